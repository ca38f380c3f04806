// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"path/filepath"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/kubernetes"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/layout"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/pki"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/topology"
)

// Options are the choices that a user has.
type Options struct {
	// Audit logs every request, with its user but without its content.
	Audit bool
	// TolerationSeconds is how long pods stay bound to a node that is lost.
	TolerationSeconds int
	// Families are the cluster's families of addresses.
	Families topology.Families
	// Kubernetes is the release whose programs run.
	Kubernetes kubernetes.Release
}

func (o Options) serviceCIDRs() string {
	return o.Families.List(func(f topology.Family) string { return f.ServiceCIDR })
}

// A lost node is noticed quickly, so that tests of node failures are short. The
// grace period must span several renewals of a kubelet's lease: the nodes'
// configuration makes those frequent accordingly.
const (
	nodeMonitorGracePeriod = "10s"
	nodeMonitorPeriod      = "1s"
)

const etcdURL = "http://127.0.0.1:2379"

func etcdArgs(l layout.Layout) []string {
	const peer = "http://127.0.0.1:2380"
	return []string{
		"etcd",
		"--name=cp",
		"--data-dir=" + filepath.Join(l.Data(), "etcd"),
		"--listen-client-urls=" + etcdURL,
		"--advertise-client-urls=" + etcdURL,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=cp=" + peer,
		"--log-level=warn",
	}
}

func apiServerArgs(l layout.Layout, options Options) []string {
	certs := pki.Store{Dir: l.PKI()}
	toleration := fmt.Sprint(options.TolerationSeconds)
	args := []string{
		"kube-apiserver",
		"--etcd-servers=" + etcdURL,
		"--bind-address=0.0.0.0",
		fmt.Sprintf("--secure-port=%d", topology.APIPort),
		"--advertise-address=" + options.Families.Primary().ControlPlaneIP,
		"--service-cluster-ip-range=" + options.serviceCIDRs(),
		"--allow-privileged=true",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--client-ca-file=" + certs.File(pki.CA+".crt"),
		"--tls-cert-file=" + certs.File(pki.APIServer+".crt"),
		"--tls-private-key-file=" + certs.File(pki.APIServer+".key"),
		"--kubelet-certificate-authority=" + certs.File(pki.CA+".crt"),
		"--kubelet-client-certificate=" + certs.File(pki.KubeletClient+".crt"),
		"--kubelet-client-key=" + certs.File(pki.KubeletClient+".key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc." + topology.ClusterDomain,
		"--service-account-key-file=" + certs.File(pki.ServiceAccountKeys+".pub"),
		"--service-account-signing-key-file=" + certs.File(pki.ServiceAccountKeys+".key"),
		// The aggregation layer. Routing to endpoints needs no kube-proxy in this
		// namespace: no ClusterIP is ever dialled from it.
		"--enable-aggregator-routing=true",
		"--proxy-client-cert-file=" + certs.File(pki.FrontProxyClient+".crt"),
		"--proxy-client-key-file=" + certs.File(pki.FrontProxyClient+".key"),
		"--requestheader-client-ca-file=" + certs.File(pki.FrontProxyCA+".crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--default-not-ready-toleration-seconds=" + toleration,
		"--default-unreachable-toleration-seconds=" + toleration,
	}
	if options.Audit {
		args = append(args,
			"--audit-policy-file="+auditPolicyFile(l),
			"--audit-log-path="+AuditLog(l),
			"--audit-log-maxsize=4096", // megabytes: in practice never rotated
		)
	}
	return args
}

// AuditLog is the file that requests of the operator are logged to.
func AuditLog(l layout.Layout) string { return filepath.Join(l.Logs(), "audit.log") }

func auditPolicyFile(l layout.Layout) string { return filepath.Join(l.Config(), "audit-policy.yaml") }

// auditPolicy logs the requests of the operator when they come in. Those of all others would be some
// hundred times as many.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [ResponseStarted, ResponseComplete]
rules:
- level: Metadata
  userGroups: ["system:serviceaccounts:etcd-operator-system"]
- level: None
`

func controllerManagerArgs(l layout.Layout, options Options) []string {
	certs := pki.Store{Dir: l.PKI()}
	kubeconfig := certs.Kubeconfig(pki.ControllerManager)
	return []string{
		"kube-controller-manager",
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		"--leader-elect=false",
		"--allocate-node-cidrs=false", // the nodes know theirs by their number
		"--cluster-cidr=" + options.Families.List(func(f topology.Family) string { return f.PodCIDR }),
		"--service-cluster-ip-range=" + options.serviceCIDRs(),
		"--root-ca-file=" + certs.File(pki.CA+".crt"),
		"--cluster-signing-cert-file=" + certs.File(pki.CA+".crt"),
		"--cluster-signing-key-file=" + certs.File(pki.CA+".key"),
		"--requestheader-client-ca-file=" + certs.File(pki.FrontProxyCA+".crt"),
		"--service-account-private-key-file=" + certs.File(pki.ServiceAccountKeys+".key"),
		"--use-service-account-credentials=true",
		// With the default of 20 requests a second it takes 7 s alone to start all controllers.
		"--kube-api-qps=200",
		"--kube-api-burst=400",
		"--node-monitor-grace-period=" + nodeMonitorGracePeriod,
		"--node-monitor-period=" + nodeMonitorPeriod,
	}
}

func schedulerArgs(l layout.Layout) []string {
	kubeconfig := (pki.Store{Dir: l.PKI()}).Kubeconfig(pki.Scheduler)
	return []string{
		"kube-scheduler",
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		"--leader-elect=false",
	}
}
