#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh OUTPUT: builds hyperkube as a static program that reports the Kubernetes version of go.mod (Helm and kubectl compare it).
set -eu
output=$(realpath -m "${1:?usage: build.sh OUTPUT}")
cd "$(dirname "$0")"
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
minor=${version#v1.}
stamp() { printf ' -X %s.gitVersion=%s -X %s.gitMajor=1 -X %s.gitMinor=%s -X %s.gitTreeState=clean' "$1" "$version" "$1" "$1" "${minor%%.*}" "$1"; }
CGO_ENABLED=0 exec go build -trimpath -o "$output" \
  -ldflags "-s -w$(stamp k8s.io/component-base/version)$(stamp k8s.io/client-go/pkg/version)" .
