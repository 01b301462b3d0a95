// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"fmt"
	"strings"
	"testing"
)

// A hook that calls NVIDIA's programs through others, such as that of `ctr run --gpus`,
// makes a GPU container, and does not survive the edit of one that asks for a share.
func TestHookBehindAnother(t *testing.T) {
	for args, vendor := range map[string]bool{
		`"containerd","oci-hook","--","/usr/bin/nvidia-container-cli","--load-kmods","configure","--device=0"`: true,
		`"containerd","oci-hook","nvidia-container-cli"`:                                                       true,
		`"oci-hook","--","nvidia-container-runtime-hook"`:                                                      true,
		`"containerd","oci-hook","--","/usr/bin/other"`:                                                        false,
		`"containerd","oci-hook","--"`:                                                                         false,
		`"containerd","oci-hook"`:                                                                              false,
		`"env","A=b","oci-hook","/usr/bin/nvidia-ctk"`:                                                         true,
		`"sh","-c","oci-hook; exec /usr/bin/nvidia-container-cli configure"`:                                   true,
	} {
		for _, stage := range []string{"prestart", "createRuntime", "createContainer"} {
			spec := fmt.Sprintf(`{"ociVersion":"1.0.2","process":{"args":["sh"],"cwd":"/"},"root":{"path":"rootfs"},
				"hooks":{%q:[{"path":"/usr/bin/containerd","args":[%s],"env":["A=b"]}]}}`, stage, args)
			s, err := Parse([]byte(spec))
			if err != nil {
				t.Fatal(err)
			}
			if reasons := s.Reasons(Ask{}, testHost); (len(reasons) > 0) != vendor {
				t.Errorf("%s %s: reasons %q", stage, args, reasons)
			}
			out, err := edit([]byte(spec), testDriver(t, "plain"), testGrant("0"))
			if err != nil {
				t.Fatal(err)
			}
			if kept := strings.Contains(string(out), "oci-hook"); kept == vendor {
				t.Errorf("%s %s: after the edit: %v", stage, args, kept)
			}
		}
	}
}
