// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"context"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

const (
	// googleHost is where Google Cloud Storage serves the protocol of S3.
	googleHost     = "storage.googleapis.com"
	acceptEncoding = "Accept-Encoding"
	signing        = "Signing"
)

// isGoogle is true if an endpoint is Google's.
func isGoogle(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	return host == googleHost || strings.HasSuffix(host, "."+googleHost)
}

// leaveEncodingUnsigned sends Accept-Encoding without signing it. The servers in front of Google Cloud Storage change
// this header, so a signature of it never matches. It is sent all the same, because Go requests compression without it.
func leaveEncodingUnsigned(o *s3.Options) {
	type sent struct{}
	remove := middleware.FinalizeMiddlewareFunc("RemoveAcceptEncoding",
		func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
			if request, ok := in.Request.(*smithyhttp.Request); ok {
				ctx = middleware.WithStackValue(ctx, sent{}, request.Header.Get(acceptEncoding))
				request.Header.Del(acceptEncoding)
			}
			return next.HandleFinalize(ctx, in)
		})
	restore := middleware.FinalizeMiddlewareFunc("RestoreAcceptEncoding",
		func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
			value, _ := middleware.GetStackValue(ctx, sent{}).(string)
			if request, ok := in.Request.(*smithyhttp.Request); ok && value != "" {
				request.Header.Set(acceptEncoding, value)
			}
			return next.HandleFinalize(ctx, in)
		})
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		if err := stack.Finalize.Insert(remove, signing, middleware.Before); err != nil {
			return err
		}
		return stack.Finalize.Insert(restore, signing, middleware.After)
	})
}
