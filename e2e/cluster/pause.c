// SPDX-License-Identifier: Apache-2.0
// The pause container: holds the namespaces of a pod, reaps orphans and ends on SIGTERM. Built static, packed alone in an image.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int signal_number) {
  (void)signal_number;
  _exit(0);
}

static void reap(int signal_number) {
  (void)signal_number;
  while (waitpid(-1, NULL, WNOHANG) > 0) {
  }
}

int main(void) {
  signal(SIGINT, end);
  signal(SIGTERM, end);
  signal(SIGCHLD, reap);
  for (;;)
    pause();
}
