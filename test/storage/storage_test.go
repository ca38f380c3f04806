// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// kubectl is a kubectl of an installation of artifacts/ha. The members in SERVING read through a quorum, and exec runs its
// command here, with the volumes below ROOT. A call whose arguments contain CUT fails, and CALLS lists the others. The
// files below ROOT say what kubectl get prints of API servers and their storage, of the PVC of a single one, and of pods that
// wait. One has the revision of the members.
const kubectl = `#!/bin/sh
echo "$*" >>"$CALLS"
case "$*" in
*"$CUT"*) echo "kubectl: cut" >&2; exit 1 ;;
*"apply -f -"*)
  manifest=$(cat)
  echo "$manifest" >>"$ROOT/applied"
  member=$(echo "$manifest" | sed -n 's/.*etcd-operator-storage-\([0-9]\)\.etcd.*/\1/p' | head -n 1)
  echo "$member" >"$ROOT/member"
  mkdir -p "$ROOT/copy"
  echo "data of $member" >"$ROOT/copy/etcd-operator.db"
  # The pod that moves the data of a single API server does so below ROOT.
  case "$manifest" in *etcd-operator-apiserver-take-out*)
    script=$(echo "$manifest" | awk '/- [|]$/ { on = 1; next } /^      [a-z]/ { on = 0 } on' | sed "s|/data|$ROOT/data|g")
    [ ! -d "$ROOT/data" ] || {
      rm "$ROOT/copy/etcd-operator.db"
      MOVE=$(echo "$manifest" | sed -n 's/.*value: "\(.*\)"/\1/p') PATH=$ROOT/pod:$PATH sh -ec "$script" && cp "$ROOT/data/etcd-moved/etcd/member/snap/db" "$ROOT/copy/etcd-operator.db"
    } ;;
  esac ;;
*"get pod etcd-operator-storage-save"*)
  case "$SERVING" in *"$(cat "$ROOT/member")"*) echo Running ;; *) echo Failed ;; esac ;;

*"get pod etcd-operator-storage-images"*status.phase*) [ -e "$ROOT/waiting" ] || echo Running ;;
*waiting.reason*) cat "$ROOT/waiting" ;;
*"get pods -l app.kubernetes.io/name=etcd-operator-apiserver,"*) cat "$ROOT/apiservers" || true ;;
*"get deployment etcd-operator-controller"*) cat "$ROOT/controller" ;;
*"get deployment etcd-operator-apiserver "*.args*) [ ! -e "$ROOT/deployment" ] || cat "$ROOT/deployment" ;;
*"get configmap etcd-operator-apiserver-storage "*) [ ! -e "$ROOT/servers" ] || cat "$ROOT/servers" ;;
*"get statefulset"*) [ ! -e "$ROOT/without-members" ] ;;

*"get pvc etcd-operator-apiserver-data"*"-o name") echo persistentvolumeclaim/etcd-operator-apiserver-data ;;
*from-single=*) echo "${*##*=}" >"$ROOT/moved" ;;
*from-single-*) rm -f "$ROOT/moved" ;;
*from-single*) [ ! -e "$ROOT/moved" ] || cat "$ROOT/moved" ;;
*to-single=*) echo "${*##*=}" >"$ROOT/filled" ;;
*to-single-*) rm -f "$ROOT/filled" ;;
*to-single*) [ ! -e "$ROOT/filled" ] || cat "$ROOT/filled" ;;
*etcdctl*" get "*) echo "{\"header\":{\"member_id\":7,\"revision\":$(cat "$ROOT/revision" || echo 5),\"raft_term\":2}}" ;;
*"jsonpath={.spec.replicas}"*) echo 2 ;;
*" exec "*)
  while [ "$1" != -- ]; do shift; done
  shift
  first=$1
  shift
  for a in "$@"; do
    shift
    case "$a" in /copy/*|/backups*) a=$ROOT$a ;; esac
    set -- "$@" "$a"
  done
  "$first" "$@" | sed "s|$ROOT||" ;;
esac
`

type installation struct {
	*testing.T
	root, calls string
	env         []string
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(kubectl), 0o700); err != nil {
		t.Fatal(err)
	}
	return &installation{T: t, root: dir, calls: filepath.Join(dir, "calls")}
}

// storage runs storage.sh.
func (i *installation) storage(serving, cut string, args ...string) (string, error) {
	i.Helper()
	script, err := filepath.Abs("../../artifacts/ha/storage.sh")
	if err != nil {
		i.Fatal(err)
	}
	command := exec.CommandContext(i.Context(), script, args...)
	command.Dir = i.root
	command.Env = append(i.env, "PATH="+i.root+":"+os.Getenv("PATH"), "ROOT="+i.root, "CALLS="+i.calls, "SERVING="+serving, "CUT="+cut, "COPY="+filepath.Join(i.root, "copy.db"))
	out, err := command.CombinedOutput()
	return string(out), err
}

// hasStopped is true if the script has stopped the programs.
func (i *installation) hasStopped() bool {
	i.Helper()
	calls, err := os.ReadFile(i.calls)
	if err != nil {
		i.Fatal(err)
	}
	return strings.Contains(string(calls), "--replicas=0")
}

func (i *installation) content(file string) string {
	i.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		i.Fatal(err)
	}
	return strings.TrimSpace(string(content))
}

const none = "no call contains this"

// TestSave takes the snapshot of the first member that reads through a quorum.
func TestSave(t *testing.T) {
	for serving, want := range map[string]string{"012": "data of 0", "12": "data of 1", "2": "data of 2"} {
		t.Run(serving, func(t *testing.T) {
			i := newInstallation(t)
			file := filepath.Join(i.root, "saved.db")
			if out, err := i.storage(serving, none, "save", file); err != nil || i.content(file) != want {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	i := newInstallation(t)
	if out, err := i.storage("", none, "save", filepath.Join(i.root, "saved.db")); err == nil || !strings.Contains(out, "no member of the storage reads through a quorum") {
		t.Errorf("no member: %v: %s", err, out)
	}
}

// TestToSingleStopsNothingThatCannotBeSaved, and after it has stopped the programs it says how they start again.
func TestToSingleStopsNothingThatCannotBeSaved(t *testing.T) {
	i := newInstallation(t)
	if out, err := i.storage("", none, "to-single"); err == nil || i.hasStopped() {
		t.Errorf("stopped: %v: %s", err, out)
	}
	out, err := i.storage("12", "bring-back.yaml", "to-single")
	if err == nil || !i.hasStopped() {
		t.Fatalf("%v: %s", err, out)
	}
	for _, again := range []string{"type the same command again", "scale deployment/etcd-operator-apiserver --replicas=2", "scale deployment/etcd-operator-controller --replicas=2"} {
		if !strings.Contains(out, again) {
			t.Errorf("a failure does not say %q: %s", again, out)
		}
	}
}

// etcdctl is an etcdctl of a storage whose data was compacted before.
const etcdctl = `#!/bin/sh
case "$*" in
*"endpoint status -w json"*) echo '[{"Status":{"header":{"member_id":7,"revision":42},"dbSize":9}}]' ;;
*" compact "*) echo "required revision has been compacted" >&2; exit 1 ;;
esac
`

// TestShrink: a full storage is compacted, every member defragmented, and only then the alarm disarmed.
func TestShrink(t *testing.T) {
	i := newInstallation(t)
	if err := os.WriteFile(filepath.Join(i.root, "etcdctl"), []byte(etcdctl), 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := i.storage("012", none, "shrink"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	calls := i.content(i.calls)
	for _, next := range []string{"compact --physical 42", "storage-0 -c etcd", "defrag", "storage-1 -c etcd", "defrag", "storage-2 -c etcd", "defrag", "alarm disarm"} {
		_, after, found := strings.Cut(calls, next)
		if !found {
			t.Fatalf("%q does not follow:\n%s", next, i.content(i.calls))
		}
		calls = after
	}
	i = &installation{T: t, root: i.root, calls: filepath.Join(i.root, "calls-of-a-failure")}
	if out, err := i.storage("012", "storage-2 -c etcd", "shrink"); err == nil || !strings.Contains(out, "member 2 was not defragmented") || strings.Contains(i.content(i.calls), "disarm") {
		t.Errorf("a member that is away: %v: %s", err, out)
	}
	if out, err := i.storage("012", " exec ", "shrink"); err == nil || !strings.Contains(out, "no member of the storage responds") {
		t.Errorf("no member: %v: %s", err, out)
	}
}

// TestBackup: the newest file wins, and a clock that was ahead names and dates none.
func TestBackup(t *testing.T) {
	i := newInstallation(t)
	now := time.Now().UTC()
	for _, b := range []struct {
		due, stored time.Duration
		revision    string
	}{{-3 * time.Hour, -3 * time.Hour, "9"}, {-2 * time.Hour, -time.Minute, "20"}, {-time.Hour, -time.Hour, "30"}, {1000 * time.Hour, -2 * time.Hour, "40"}, {-90 * time.Minute, time.Hour, "50"}} {
		name := filepath.Join(i.root, "backups", "state_v"+b.revision+"_"+now.Add(b.due).Format("2006-01-02-15:04:05"))
		for file, content := range map[string]string{name: b.revision, name + ".manifest.json": "{}"} {
			stored := now.Add(b.stored)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(file, stored, stored); err != nil {
				t.Fatal(err)
			}
		}
	}
	file := filepath.Join(i.root, "newest.db")
	out, err := i.storage("", none, "backup", file)
	if err != nil || i.content(file) != "20" {
		t.Fatalf("%v: %s", err, out)
	}
	if want := "the backup of " + now.Add(-2*time.Hour).Format("2006-01-02-15:04:05"); !strings.Contains(out, want) {
		t.Errorf("got %s, want %s", out, want)
	}
}

// TestFirstRevision: what is brought back begins at the revision of the clock, or at the one that a user chooses.
func TestFirstRevision(t *testing.T) {
	for name, test := range map[string]struct{ command, chosen, want string }{
		"members, by the clock": {"restore", "", `value: "[0-9]{10}0000"`},
		"members, chosen":       {"restore", "99999999999999", `value: "99999999999999"`},
		"one server, the clock": {"restore-single", "", `--revision=0\]`},
		"one server, chosen":    {"restore-single", "99999999999999", `--revision=99999999999999\]`},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstallation(t)
			snapshot := filepath.Join(i.root, "snapshot.db")
			i.has("snapshot.db", "snapshot")
			if test.command == "restore-single" {
				i.has("without-members", "")
			}
			i.env = append(i.env, "REVISION="+test.chosen)
			_, _ = i.storage("0 1 2", none, test.command, snapshot) // the fake members may not serve afterwards
			applied, err := os.ReadFile(filepath.Join(i.root, "applied"))
			if err != nil || !regexp.MustCompile(test.want).Match(applied) {
				t.Errorf("%v, and %q is missing in\n%s", err, test.want, applied)
			}
		})
	}
}
