// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/path"
	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/client-go/kubernetes"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/clientcert"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/frontproxy"
)

// applyAuthorization replaces the authorizer of the recommended options. Their client sends at
// most 200 requests a second, so that a client that reads more objects directly would wait.
// The client here has no limit: priority and fairness protects the kube-apiserver. Their
// authenticator verifies a client certificate with every request; here it is remembered.
func (o *Options) applyAuthorization(config *apiserver.Config) error {
	if o.Recommended.Authorization == nil {
		return nil
	}
	delegated, err := o.delegatedAuthorizer()
	if err != nil {
		return fmt.Errorf("delegated authorization: %w", err)
	}
	generic := config.Generic
	generic.Authorization.Authorizer = delegated
	config.DelegatedAuthorizer = delegated

	proxy := generic.Authentication.RequestHeaderConfig
	if proxy == nil {
		return nil
	}
	if clientCA := generic.SecureServing.ClientCA; clientCA != nil {
		generic.Authentication.Authenticator = clientcert.NewAuthenticator(
			generic.Authentication.Authenticator, clientCA.CurrentCABundleContent, proxy.UsernameHeaders, o.clock)
	}
	if o.AuthorizeFrontProxyRequests {
		return nil
	}
	generic.Authentication.Authenticator = frontproxy.NewAuthenticator(proxy, generic.Authentication.Authenticator, o.clock)
	generic.Authorization.Authorizer = frontproxy.NewAuthorizer(etcd.GroupName, delegated)
	return nil
}

func (o *Options) delegatedAuthorizer() (authorizer.Authorizer, error) {
	flags := o.Recommended.Authorization
	client, err := kubeConfig(flags.RemoteKubeConfigFile)
	if err != nil {
		return nil, err
	}
	client.QPS, client.Timeout = -1, flags.ClientTimeout
	kube, err := kubernetes.NewForConfig(client)
	if err != nil {
		return nil, err
	}
	paths, err := path.NewAuthorizer(flags.AlwaysAllowPaths)
	if err != nil {
		return nil, err
	}
	reviews := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: kube.AuthorizationV1(),
		AllowCacheTTL:             flags.AllowCacheTTL,
		DenyCacheTTL:              flags.DenyCacheTTL,
		WebhookRetryBackoff:       flags.WebhookRetryBackoff,
	}
	delegating, err := reviews.New()
	if err != nil {
		return nil, err
	}
	return union.New(
		union.NamedAuthorizer{AuthorizerName: "kubernetes.io/always-allow-groups", Authorizer: authorizerfactory.NewPrivilegedGroups(flags.AlwaysAllowGroups...)},
		union.NamedAuthorizer{AuthorizerName: "kubernetes.io/always-allow-paths", Authorizer: paths},
		union.NamedAuthorizer{AuthorizerName: "kubernetes.io/webhook", Authorizer: delegating},
	)
}
