// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// maxValidation is far more time of a processor than validation takes.
const maxValidation = time.Second

// rusageThread asks for what the calling thread has used.
const rusageThread = 1

// processorTime returns how much time of a processor the calling thread has had. A machine
// that is busy with something else does not add to it.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(rusageThread, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// tinyQuantity matches numbers that the parser of quantities rounds up to a billionth
// by writing all their digits out.
var tinyQuantity = regexp.MustCompile(`[eE]-[0-9]{5,}`)

// seeds are manifests as users have them, and objects as a store has them.
func seeds(f *testing.F, scheme *runtime.Scheme) {
	f.Helper()
	manifests, err := filepath.Glob("../../../../artifacts/examples/compat/*.yaml")
	if err != nil || len(manifests) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	stored, err := filepath.Glob("../install/testdata/*/*.[jp][sb]*")
	if err != nil || len(stored) == 0 {
		f.Fatalf("no stored objects: %v", err)
	}
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	for _, path := range append(manifests, stored...) {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		object, _, err := decoder.Decode(data, nil, nil)
		if err != nil {
			f.Fatalf("%s: %v", path, err)
		}
		scheme.Default(object)
		var binary bytes.Buffer
		if err := protobuf.NewSerializer(scheme, scheme).Encode(object, &binary); err != nil {
			f.Fatal(err)
		}
		f.Add(binary.Bytes())
	}
	for _, spec := range []string{
		`{"size":3,"version":"3.6.8;reboot","repository":"$(id)"}`, `{"size":-1}`, `{"TLS":{"static":{"operatorSecret":"o"}}}`, `{"etcd":{"quotaBackendBytes":"1e999999999"}}`, `{"pod":{"resources":{"limits":{"cpu":"1e999999999"},"requests":{"cpu":"1"}}}}`, `{"etcd":{"extraArgs":["--name=x\n"]}}`,
		`{"etcd":{"heartbeatInterval":"9999999h","electionTimeout":"-1ns"}}`, `{"backup":{"schedule":"TZ=0","timeZone":"../x"}}`, `{"pod":{"affinity":{"nodeAffinity":{}},"topologySpreadConstraints":[{}]}}`,
	} {
		f.Add([]byte(`{"apiVersion":"etcd.database.coreos.com/v1beta2","kind":"EtcdCluster","metadata":{"name":"a"},"spec":` + spec + `}`))
	}
}

// fuzzDecode feeds whatever decodes as a T to everything that sees it before it is
// stored: nothing may panic or take long, and the store must give back what it got.
func fuzzDecode[T runtime.Object](f *testing.F, check func(T) field.ErrorList) {
	f.Helper()
	scheme := runtime.NewScheme()
	if err := v1beta2.AddToScheme(scheme); err != nil {
		f.Fatal(err)
	}
	seeds(f, scheme)
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	store := protobuf.NewSerializer(scheme, scheme)
	f.Fuzz(func(t *testing.T, data []byte) {
		if tinyQuantity.Match(data) {
			t.Skip("takes the decoder, which is not ours, long")
		}
		decoded, gvk, err := decoder.Decode(data, nil, nil)
		object, ok := decoded.(T)
		if err != nil || !ok {
			return
		}
		object.GetObjectKind().SetGroupVersionKind(*gvk) // As the encoder of the server does.
		scheme.Default(object)
		goruntime.LockOSThread()
		begin := processorTime(t)
		errs := check(object)
		taken := processorTime(t) - begin
		goruntime.UnlockOSThread()
		if taken > maxValidation {
			t.Errorf("validation took %s", taken)
		}
		if len(errs) > maxErrors+1 {
			t.Errorf("%d errors", len(errs))
		}

		var stored bytes.Buffer
		if err := store.Encode(object, &stored); err != nil {
			return // Text that is not UTF-8 cannot be stored, and is an error of the request.
		}
		loaded, _, err := store.Decode(stored.Bytes(), nil, nil)
		if err != nil {
			t.Fatalf("what was stored cannot be read: %v", err)
		}
		if !equality.Semantic.DeepEqual(object.DeepCopyObject(), loaded) {
			t.Errorf("changed in the store:\n%#v\n%#v", object, loaded)
		}
	})
}

// unchanged fails if an update that changes nothing is rejected: such an object could
// never be repaired or deleted. Metadata is left to those who own its rules.
func unchanged(errs field.ErrorList) field.ErrorList {
	for _, err := range errs {
		if !strings.HasPrefix(err.Field, "metadata") {
			panic("an update that changes nothing is rejected: " + err.Error())
		}
	}
	return errs
}

func FuzzDecodeEtcdCluster(f *testing.F) {
	fuzzDecode(f, func(object *v1beta2.EtcdCluster) field.ErrorList {
		_ = WarningsForEtcdCluster(object)
		unchanged(ValidateEtcdClusterUpdate(object, object.DeepCopy()))
		unchanged(ValidateEtcdClusterStatusUpdate(object, object.DeepCopy()))
		_ = ValidateEtcdClusterUpdate(object, &v1beta2.EtcdCluster{})
		_ = ValidateEtcdClusterUpdate(&v1beta2.EtcdCluster{}, object)
		return ValidateEtcdCluster(object)
	})
}

func FuzzDecodeEtcdBackup(f *testing.F) {
	fuzzDecode(f, func(object *v1beta2.EtcdBackup) field.ErrorList {
		_ = WarningsForEtcdBackup(object)
		unchanged(ValidateEtcdBackupUpdate(object, object.DeepCopy()))
		unchanged(ValidateEtcdBackupStatusUpdate(object, object.DeepCopy()))
		_ = ValidateEtcdBackupUpdate(object, &v1beta2.EtcdBackup{})
		_ = ValidateEtcdBackupUpdate(&v1beta2.EtcdBackup{}, object)
		return ValidateEtcdBackup(object)
	})
}

func FuzzDecodeEtcdRestore(f *testing.F) {
	fuzzDecode(f, func(object *v1beta2.EtcdRestore) field.ErrorList {
		_ = WarningsForEtcdRestore(object)
		unchanged(ValidateEtcdRestoreUpdate(object, object.DeepCopy()))
		unchanged(ValidateEtcdRestoreStatusUpdate(object, object.DeepCopy()))
		_ = ValidateEtcdRestoreUpdate(object, &v1beta2.EtcdRestore{})
		_ = ValidateEtcdRestoreUpdate(&v1beta2.EtcdRestore{}, object)
		return ValidateEtcdRestore(object)
	})
}
