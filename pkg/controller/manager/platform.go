// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/discovery"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// PodUser tells how the user that pods run as is chosen.
type PodUser string

// Values of PodUser.
const (
	// PodUserFixed runs pods as the user of the image.
	PodUserFixed PodUser = "fixed"
	// PodUserNamespace leaves the choice to the admission of the namespace.
	PodUserNamespace PodUser = "namespace"
	// PodUserAuto is PodUserNamespace where OpenShift's security API is served, and
	// PodUserFixed elsewhere.
	PodUserAuto PodUser = "auto"
)

// openShiftSecurity is the API group of OpenShift's security context constraints.
const openShiftSecurity = "security.openshift.io"

// registryPath is a registry and an optional path in it, without scheme, tag and digest.
var registryPath = regexp.MustCompile(`^([a-zA-Z0-9.-]+|\[[0-9a-fA-F:]+\])(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*/?$`)

// newPlatform returns the default: the architectures that releases have images for, and
// that of this very program, whose image has the agent.
func newPlatform() resources.Platform {
	p := resources.Platform{Architectures: []string{"amd64", "arm64"}}
	if !slices.Contains(p.Architectures, runtime.GOARCH) {
		p.Architectures = append(p.Architectures, runtime.GOARCH)
	}
	return p
}

func (o *Options) addPlatformFlags(fs *pflag.FlagSet) {
	p := &o.Platform
	fs.StringVar(&p.ImageRegistry, "image-registry", p.ImageRegistry, "registry, with an optional path, that has the images of the default repositories, such as registry.example.com/mirror. It replaces quay.io in the images of etcd and of the agent. A spec.repository or an --agent-image of another repository is used as it is written")
	fs.StringSliceVar(&p.ImagePullSecrets, "image-pull-secrets", p.ImagePullSecrets, "names of the image pull secrets of every pod that is created; the Secrets are in the namespace of each EtcdCluster")
	fs.StringSliceVar(&p.Architectures, "image-architectures", p.Architectures, "architectures (node label kubernetes.io/arch) that the images are built for; pods run on nodes of these architectures only; empty: on every node")
	fs.StringVar((*string)(&o.PodUser), "pod-user", string(o.PodUser), "fixed: pods run as user 65532; namespace: user and groups are left out, and the admission of the namespace sets them. auto is namespace where the API group "+openShiftSecurity+" is served, and fixed elsewhere. What spec.pod.securityContext sets is kept")
}

// checkPlatform checks what the flags of addPlatformFlags say.
func (o *Options) checkPlatform() error {
	p := &o.Platform
	if p.ImageRegistry != "" && !registryPath.MatchString(p.ImageRegistry) {
		return fmt.Errorf("--image-registry is %q and must be a registry with an optional path, without scheme, tag and digest, such as registry.example.com/mirror", p.ImageRegistry)
	}
	for _, name := range p.ImagePullSecrets {
		if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
			return fmt.Errorf("--image-pull-secrets has %q, which is no name of a Secret: %s", name, strings.Join(wrong, ", "))
		}
	}
	for _, name := range p.Architectures {
		if wrong := validation.IsValidLabelValue(name); name == "" || len(wrong) > 0 {
			return fmt.Errorf("--image-architectures has %q, which is no value of a label: name architectures such as amd64", name)
		}
	}
	switch o.PodUser {
	case PodUserFixed, PodUserNamespace, PodUserAuto:
		return nil
	default:
		return fmt.Errorf("--pod-user is %q and must be %s, %s or %s", o.PodUser, PodUserFixed, PodUserNamespace, PodUserAuto)
	}
}

// platform returns what the options and the Kubernetes cluster say about every pod.
func (o *Options) platform(api discovery.ServerGroupsInterface) (resources.Platform, error) {
	p := o.Platform
	p.UserOfNamespace = o.PodUser == PodUserNamespace
	if o.PodUser != PodUserAuto {
		return p, nil
	}
	groups, err := api.ServerGroups()
	if err != nil {
		return p, fmt.Errorf("find out whether %s is served, which decides on the user of pods (--pod-user=%s and --pod-user=%s do not ask): %w",
			openShiftSecurity, PodUserFixed, PodUserNamespace, err)
	}
	for i := range groups.Groups {
		p.UserOfNamespace = p.UserOfNamespace || groups.Groups[i].Name == openShiftSecurity
	}
	return p, nil
}
