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

// Levels at which etcd's talk is of interest.
const (
	infoLevel  = 4
	debugLevel = 6
)

// intended are warnings of what is meant to be so here: one socket for one client,
// and no authentication on a socket that only this user can open.
var intended = sets.New(
	"Running http and grpc server on single port. This is not recommended for production.",
	"simple token is not cryptographically signed",
)

// logBridge carries etcd's log to klog, so that a process has one log. What etcd
// tells in passing needs a higher verbosity than what it warns of.
type logBridge struct {
	logger klog.Logger
	fields []zapcore.Field
	// quiet is set once etcd is being stopped; its copies share it.
	quiet *atomic.Bool
}

var _ zapcore.Core = &logBridge{}

func newLogBridge(logger klog.Logger) *logBridge {
	return &logBridge{logger: logger, quiet: &atomic.Bool{}}
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
	return &logBridge{logger: b.logger, fields: slices.Concat(b.fields, fields), quiet: b.quiet}
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
	case b.quiet.Load() || entry.Level == zapcore.InfoLevel || intended.Has(entry.Message):
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
