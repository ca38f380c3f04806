// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// SecretFormat is how a secret names the three parts of a certificate.
type SecretFormat string

// Values of SecretFormat.
const (
	// FormatNamed is what static secrets have always held: <use>.crt, <use>.key and
	// <use>-ca.crt, where <use> is peer, server or etcd-client. It is the default.
	FormatNamed SecretFormat = ""
	// FormatKubernetes is what Kubernetes and cert-manager write: tls.crt, tls.key
	// and ca.crt.
	FormatKubernetes SecretFormat = "Kubernetes"
)

// SecretUse is what a certificate is for. Its value is the <use> of FormatNamed.
type SecretUse string

// Values of SecretUse.
const (
	UsePeer     SecretUse = "peer"
	UseServer   SecretUse = "server"
	UseOperator SecretUse = "etcd-client"
)

// SecretFiles names the entries of a secret that hold a certificate.
type SecretFiles struct{ Cert, Key, CA string }

// Files returns the names of the entries for a use in a format.
func Files(use SecretUse, format SecretFormat) SecretFiles {
	if format == FormatKubernetes {
		return SecretFiles{Cert: corev1.TLSCertKey, Key: corev1.TLSPrivateKeyKey, CA: corev1.ServiceAccountRootCAKey}
	}
	u := string(use)
	return SecretFiles{Cert: u + ".crt", Key: u + ".key", CA: u + "-ca.crt"}
}

// FormatOf returns the format of a secret for a use, by the names of its entries
// only. FormatNamed wins if a secret is complete in both, because it always meant
// that; ok is false if it is complete in neither.
func FormatOf(use SecretUse, secret *corev1.Secret) (format SecretFormat, ok bool) {
	for _, format := range secretFormats() {
		if len(Files(use, format).MissingFrom(secret)) == 0 {
			return format, true
		}
	}
	return FormatNamed, false
}

func secretFormats() []SecretFormat { return []SecretFormat{FormatNamed, FormatKubernetes} }

// MissingFrom returns the names of the entries that a secret lacks.
func (f SecretFiles) MissingFrom(secret *corev1.Secret) []string {
	var names []string
	for _, name := range []string{f.Cert, f.Key, f.CA} {
		if _, has := secret.Data[name]; !has {
			names = append(names, name)
		}
	}
	return names
}

// TLSSecrets names the secrets of a cluster; a name is empty where no certificate is
// used.
type TLSSecrets struct{ Peer, Server, Operator string }

// Secrets returns the names of the secrets that hold the certificates of c: those of
// the user, or those that are issued for the cluster. The latter are named even
// while they do not exist, so that pods wait for them instead of speaking plainly.
func Secrets(c *v1beta2.EtcdCluster) TLSSecrets {
	tls := c.Spec.TLS
	switch {
	case tls == nil:
		return TLSSecrets{}
	case tls.Static != nil:
		s := TLSSecrets{Operator: tls.Static.OperatorSecret}
		if m := tls.Static.Member; m != nil {
			s.Peer, s.Server = m.PeerSecret, m.ServerSecret
		}
		return s
	case tls.Auto != nil || tls.CertManager != nil:
		return TLSSecrets{Peer: c.Name + v1beta2.PeerSecretSuffix, Server: c.Name + v1beta2.ServerSecretSuffix, Operator: c.Name + v1beta2.OperatorSecretSuffix}
	default:
		return TLSSecrets{}
	}
}

// HasPeerTLS is true if the members speak TLS to each other.
func HasPeerTLS(c *v1beta2.EtcdCluster) bool { return Secrets(c).Peer != "" }

// HasClientTLS is true if the members speak TLS to clients. A secret for the
// controller alone counts too: the pod then names no server secret and is rejected,
// instead of serving without TLS.
func HasClientTLS(c *v1beta2.EtcdCluster) bool {
	s := Secrets(c)
	return s.Server != "" || s.Operator != ""
}

// Where the certificates are mounted, and the names of the volumes.
const (
	peerTLSDir      = "/etc/etcdtls/member/peer-tls"
	serverTLSDir    = "/etc/etcdtls/member/server-tls"
	peerTLSVolume   = "member-peer-tls"
	serverTLSVolume = "member-server-tls"
)

// tlsMount is where a pod mounts the secret for a use, and how the flags of etcd for that use begin.
type tlsMount struct{ volume, dir, flag string }

func tlsMountOf(use SecretUse) tlsMount {
	if use == UsePeer {
		return tlsMount{volume: peerTLSVolume, dir: peerTLSDir, flag: "--peer-"}
	}
	return tlsMount{volume: serverTLSVolume, dir: serverTLSDir, flag: "--"}
}

// fileArgs returns the flags that name the files of a certificate.
func (m tlsMount) fileArgs(f SecretFiles) []string {
	return []string{
		m.flag + "trusted-ca-file=" + m.dir + "/" + f.CA,
		m.flag + "cert-file=" + m.dir + "/" + f.Cert,
		m.flag + "key-file=" + m.dir + "/" + f.Key,
	}
}

// MountedFiles returns the secret that the pod of a member mounts for a use, and the entries that the
// flags of its etcd name. The flags of a pod never change, so etcd in it needs these entries as long as the pod
// exists. ok is false for a pod without such flags.
func MountedFiles(pod *corev1.Pod, use SecretUse) (secret string, files SecretFiles, ok bool) {
	mount := tlsMountOf(use)
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.Name == mount.volume && v.Secret != nil {
			secret = v.Secret.SecretName
		}
	}
	for i := range pod.Spec.Containers {
		ctr := &pod.Spec.Containers[i]
		if ctr.Name != ContainerName || secret == "" {
			continue
		}
		for _, format := range secretFormats() {
			files := Files(use, format)
			isMissing := func(arg string) bool { return !slices.Contains(ctr.Command, arg) }
			if !slices.ContainsFunc(mount.fileArgs(files), isMissing) {
				return secret, files, true
			}
		}
	}
	return "", SecretFiles{}, false
}

// tlsArgs returns the flags for the certificates.
func tlsArgs(c *v1beta2.EtcdCluster, m MemberPod) []string {
	var args []string
	if HasPeerTLS(c) {
		f := Files(UsePeer, secretFormat(c, m.PeerFormat))
		args = append(append(args, "--peer-client-cert-auth=true"), tlsMountOf(UsePeer).fileArgs(f)...)
		if (IssuesCertificates(c) || RequestsCertificates(c)) && featuresOf(Version(c)).metricsListener {
			args = append(args, "--peer-cert-allowed-cn="+v1beta2.PeerCommonName) // since the same release
		}
	}
	if HasClientTLS(c) {
		f := Files(UseServer, secretFormat(c, m.ServerFormat))
		args = append(append(args, "--client-cert-auth=true"), tlsMountOf(UseServer).fileArgs(f)...)
	}
	return args
}

// tlsEnv makes members accept each other's certificates without a reverse DNS lookup of the
// peer's address. A new pod has no DNS name for seconds, and whatever controls the DNS could
// return any name. The flag has another name before 3.6, 3.6 rejects both names together, and 3.7
// knows the new name only. So it is two variables, and versionAnnotations gives a value to one.
func tlsEnv(c *v1beta2.EtcdCluster) []corev1.EnvVar {
	if !HasPeerTLS(c) {
		return nil
	}
	return []corev1.EnvVar{
		fromAnnotation(envSkipPeerNamesOld, annotationSkipPeerNamesOld),
		fromAnnotation(envSkipPeerNames, annotationSkipPeerNames),
	}
}

// secretFormat returns the format of a secret: issued ones have Kubernetes' names.
func secretFormat(c *v1beta2.EtcdCluster, given SecretFormat) SecretFormat {
	if tls := c.Spec.TLS; tls != nil && tls.Static == nil {
		return FormatKubernetes
	}
	return given
}

// tlsVolumes returns the volumes with the certificates and where they are mounted.
func tlsVolumes(c *v1beta2.EtcdCluster) ([]corev1.Volume, []corev1.VolumeMount) {
	var volumes []corev1.Volume
	var mounts []corev1.VolumeMount
	add := func(name, secret, dir string) {
		volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			// Root writes the files; etcd reads them through the group of the pod.
			Secret: &corev1.SecretVolumeSource{SecretName: secret, DefaultMode: ptr.To[int32](0o440)},
		}})
		mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: dir, ReadOnly: true})
	}
	secrets := Secrets(c)
	if HasPeerTLS(c) {
		add(peerTLSVolume, secrets.Peer, peerTLSDir)
	}
	if HasClientTLS(c) {
		add(serverTLSVolume, secrets.Server, serverTLSDir)
	}
	return volumes, mounts
}
