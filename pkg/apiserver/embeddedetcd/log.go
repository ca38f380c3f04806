// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package embeddedetcd

import (
	"maps"
	"slices"
	"sync/atomic"

	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
)

// Verbosities for the log of etcd.
const (
	infoLevel  = 4
	debugLevel = 6
)

// expectedWarnings are warnings about intended settings: one socket for one client, and no
// authentication on a socket that only this user can open.
var expectedWarnings = sets.New(
	"Running http and grpc server on single port. This is not recommended for production.",
	"simple token is not cryptographically signed",
	"remotes server has mismatching etcd version", // every five seconds while the storage version is lower, see version.go
)

// logBridge writes the log of etcd to klog, so that the process has one log. Information of etcd
// needs a higher verbosity than its warnings.
type logBridge struct {
	logger klog.Logger
	fields []zapcore.Field
	// stopping is set before etcd is stopped. Copies of the bridge share it.
	stopping *atomic.Bool
}

var _ zapcore.Core = &logBridge{}

func newLogBridge(logger klog.Logger) *logBridge {
	return &logBridge{logger: logger, stopping: &atomic.Bool{}}
}

// Enabled implements zapcore.LevelEnabler.
func (b *logBridge) Enabled(level zapcore.Level) bool {
	switch {
	case level >= zapcore.ErrorLevel:
		return true
	case level == zapcore.WarnLevel:
		return b.logger.Enabled()
	case level == zapcore.InfoLevel:
		return b.logger.V(infoLevel).Enabled()
	default:
		return b.logger.V(debugLevel).Enabled()
	}
}

// With implements zapcore.Core.
func (b *logBridge) With(fields []zapcore.Field) zapcore.Core {
	return &logBridge{logger: b.logger, fields: slices.Concat(b.fields, fields), stopping: b.stopping}
}

// Check implements zapcore.Core.
func (b *logBridge) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if b.Enabled(entry.Level) {
		return checked.AddCore(entry, b)
	}
	return checked
}

// Write implements zapcore.Core.
func (b *logBridge) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	encoder := zapcore.NewMapObjectEncoder()
	for _, field := range slices.Concat(b.fields, fields) {
		field.AddTo(encoder)
	}
	values := make([]any, 0, 2*len(encoder.Fields))
	for _, key := range slices.Sorted(maps.Keys(encoder.Fields)) {
		values = append(values, key, encoder.Fields[key])
	}
	switch {
	case b.stopping.Load() || entry.Level == zapcore.InfoLevel || expectedWarnings.Has(entry.Message):
		b.logger.V(infoLevel).Info(entry.Message, values...)
	case entry.Level >= zapcore.ErrorLevel:
		b.logger.Error(nil, entry.Message, values...)
	case entry.Level == zapcore.WarnLevel:
		b.logger.Info(entry.Message, values...)
	default:
		b.logger.V(debugLevel).Info(entry.Message, values...)
	}
	return nil
}

// Sync implements zapcore.Core.
func (b *logBridge) Sync() error { return nil }
