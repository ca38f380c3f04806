// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

const (
	// reviewTimeout is how long the kube-apiserver may take to say whose token it is.
	reviewTimeout = 10 * time.Second
	// reviewedFor is how long the responses of the kube-apiserver count.
	reviewedFor = time.Minute
	// rejectedFor is shorter: a right that was just granted counts soon.
	rejectedFor = 10 * time.Second
)

// secureMetrics serves /metrics over TLS. The kube-apiserver says which user a token belongs to, and
// whether the user may get the path, as for the metrics of the API server.
type secureMetrics struct {
	serving *server.SecureServingInfo
	handler http.Handler
}

func newSecureMetrics(ctx context.Context, o *Options, kube kubernetes.Interface, metrics http.Handler) (*secureMetrics, error) {
	handler, err := authorized(kube, metrics)
	if err != nil {
		return nil, err
	}
	options := genericoptions.NewSecureServingOptions()
	options.ServerCert.CertDirectory = "" // a certificate that is issued is kept in memory
	options.ServerCert.CertKey.CertFile, options.ServerCert.CertKey.KeyFile = o.TLSCertFile, o.TLSKeyFile
	if err := options.MaybeDefaultWithSelfSignedCerts("localhost", nil, nil); err != nil {
		return nil, fmt.Errorf("certificate for metrics: %w", err)
	}
	var config net.ListenConfig
	if options.Listener, err = config.Listen(ctx, "tcp", o.SecureMetricsAddress); err != nil {
		return nil, fmt.Errorf("listen for metrics on %s (--secure-metrics-addr): %w", o.SecureMetricsAddress, err)
	}
	s := &secureMetrics{handler: handler}
	if err := options.ApplyTo(&s.serving); err != nil {
		return nil, errors.Join(fmt.Errorf("certificate for metrics (--tls-cert-file, --tls-private-key-file): %w", err), options.Listener.Close())
	}
	return s, nil
}

// authorized serves only users that have the right to a path.
func authorized(kube kubernetes.Interface, next http.Handler) (http.Handler, error) {
	authenticator, _, err := authenticatorfactory.DelegatingAuthenticatorConfig{
		Anonymous: &apiserver.AnonymousAuthConfig{}, TokenAccessReviewClient: kube.AuthenticationV1(), TokenAccessReviewTimeout: reviewTimeout,
		CacheTTL: reviewedFor, WebhookRetryBackoff: genericoptions.DefaultAuthWebhookRetryBackoff(),
	}.New()
	if err != nil {
		return nil, fmt.Errorf("authentication for metrics: %w", err)
	}
	authorizer, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: kube.AuthorizationV1(), AllowCacheTTL: reviewedFor, DenyCacheTTL: rejectedFor,
		WebhookRetryBackoff: genericoptions.DefaultAuthWebhookRetryBackoff(),
	}.New()
	if err != nil {
		return nil, fmt.Errorf("authorization for metrics: %w", err)
	}
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	codecs := serializer.NewCodecFactory(scheme)
	handler := filters.WithAuthorization(next, authorizer, codecs)
	handler = filters.WithAuthentication(handler, authenticator, filters.Unauthorized(codecs), nil, nil)
	return filters.WithRequestInfo(handler, &request.RequestInfoFactory{APIPrefixes: sets.NewString("apis", "api"), GrouplessAPIPrefixes: sets.NewString("api")}), nil
}

// serve returns when ctx has ended and open requests are done.
func (s *secureMetrics) serve(ctx context.Context) {
	stopped, _, err := s.serving.Serve(s.handler, shutdownTimeout, ctx.Done())
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		klog.FromContext(ctx).Error(err, "The endpoint for metrics ended")
		return
	}
	<-stopped
}
