// SPDX-License-Identifier: Apache-2.0

// Command hyperkube is a whole Kubernetes in one program: etcd, the control plane, the node components and kubectl.
// The component is the first argument, or the name under which the program is called (a link named kubectl is kubectl).
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var components = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	"kube-proxy":              proxy.NewProxyCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
}

func main() {
	name := selectComponent()
	switch name {
	case "etcd":
		etcdmain.Main(os.Args)
		return
	case "kubectl":
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err) // prints the error as kubectl does and exits
		}
		return
	}
	os.Exit(cli.Run(components[name]()))
}

// selectComponent returns the component to run and leaves os.Args as that component expects them.
func selectComponent() string {
	if name := filepath.Base(os.Args[0]); isComponent(name) {
		return name
	}
	if len(os.Args) < 2 || !isComponent(os.Args[1]) {
		fmt.Fprintf(os.Stderr, "usage: hyperkube COMPONENT [flags]\ncomponents: %s\n", strings.Join(names(), ", "))
		os.Exit(2)
	}
	os.Args = os.Args[1:]
	return os.Args[0]
}

func isComponent(name string) bool { return slices.Contains(names(), name) }

func names() []string {
	found := []string{"etcd", "kubectl"}
	for name := range components {
		found = append(found, name)
	}
	slices.Sort(found)
	return found
}
