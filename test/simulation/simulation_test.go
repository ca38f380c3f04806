// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"flag"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/klog/v2"

	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
	"github.com/etcd-operator/etcd-operator/test/simulation/timeline"
)

var (
	scheduleCount = flag.Int("schedules", 2000, "how many schedules to play")
	firstSeed     = flag.Uint64("first-seed", 1, "the seed of the first schedule")
	nodeSchedules = flag.Int("node-schedules", 0, "how many schedules with long faults of nodes to play")
	seed          = flag.Uint64("seed", 0, "the schedule that TestReplay plays")
)

// TestMain lets more garbage pile up before it is collected: schedules leave much of it, and
// collecting it took a quarter of the time. A schedule keeps few MiB alive. It drops the logs of the
// thousands of controllers: a trace says what one of them did.
func TestMain(m *testing.M) {
	debug.SetGCPercent(1600)
	klog.SetLogger(klog.Logger{}) // one without a sink
	m.Run()
}

// TestSchedules plays many schedules and checks every step of each.
func TestSchedules(t *testing.T) {
	n := *scheduleCount
	if testing.Short() || raceEnabled {
		n = min(n, 100)
	}
	start := time.Now()
	total, failed := playAll(n, *firstSeed, Variant{}, nil)
	t.Logf("%v\n%d violations, %v", total, len(failed), time.Since(start).Round(10*time.Millisecond))
	for i, r := range failed {
		if i < 5 {
			report(t, r, Variant{})
		} else {
			t.Errorf("also seed %d: %v", r.Schedule.Seed, r.Violation)
		}
	}
	if n >= 1000 {
		requireEveryRule(t, total)
	}
}

// TestLongNodeFaults plays schedules in which nodes go for long and volumes are tied to nodes.
// It takes minutes, so it runs on request.
func TestLongNodeFaults(t *testing.T) {
	if *nodeSchedules == 0 {
		t.Skip("on request: -node-schedules=1000")
	}
	variant := Variant{Name: "long faults of nodes", story: schedules.LongNodeFaults}
	total, failed := playAll(*nodeSchedules, *firstSeed, variant, nil)
	t.Logf("%v\n%d violations", total, len(failed))
	for _, r := range failed[:min(len(failed), 5)] {
		report(t, r, variant)
	}
}

// TestSchedulesThatFailed plays those again in which something was found once.
func TestSchedulesThatFailed(t *testing.T) {
	for seed, what := range map[uint64]string{
		42011224: "a member that leads was removed while one was lost with its PVC and another was out of reach",
		42001129: "the Secret of the controller was lost with the CA, and got a copy of its own content again and again",
		42001241: "the only member restarted while its CA and all certificates were lost, and trusted only the CA before",
		42001544: "a member of 3.3 that had restarted was not ready yet, and the database became full",
		42014216: "the certificate of clients was lost with the CA, and its wait named no restored Secret that ends it",
		42009534: "a quorum responded again after the cutover of a recovery had begun",
		42001651: "the alarm of the members of before was disarmed, and a recovery member had restored a full database",
		42012200: "a member with a full database was restarted before the one that had restarted was ready",
		42017431: "an empty PVC of a cluster whose pods a quota rejected went with the cluster that the API lost",
		63020192: "all certificates of a cluster of one without a PVC were lost before its container started",
		63037077: "a member was removed while the container of the next one had just restarted with another image",
		63029889: "a record was lost while a restore waited, whose next attempt met the old member again",
		63031961: "a container was to restart with another image as soon as its node was reached again, and its pod was changed before",
		63039859: "the disk of a voter of 3.3 was emptied before any controller had seen it start",
		63002183: "all certificates were lost after the pods were created and before their containers started",
		61001929: "all certificates were lost with their CA while only a recovery member served, which no client had seen",
		117:      "the recovery member lost its volume right after it had taken over",
		252:      "an unresponsive member had returned to a patch release that 3.7 must not follow",
		616:      "a member that joined while a backup was restored left its PVC behind",
		760:      "the second voter of an etcd without learners lost its first pod before a status named it",
		659:      "a version was declared that the volume of the bootstrap member was too old for",
		700:      "a member was stopped right after its start, before it was noticed",
		936:      "the survivor was lost while the recovery member read it",
		1586:     "a declaration was corrected while a recovery waited that it had stopped",
		1734:     "the PVC of a member was deleted before its pod was admitted",
		2910:     "a learner whose disk hung was reported with every entry that the others wrote",
		14683:    "a recovery member took the name of a pod that a quota had rejected, and with it the PVC of another member",
		16537:    "no quorum, and an API that was brought back: the members that did not respond were forgotten",
		23833:    "a learner whose disk hung was promoted, and its vote was needed",
		26942:    "an upgrade was taken back to a patch release that the newer members must not follow",
		1732:     "the recovery member was lost before it was published, and no survivor was left",
		8992:     "a member that did not reach the new leader was counted on",
		21290:    "a CA was replaced for a request that another process had met",
		21615:    "a voter that the last status called a learner was not repaired",
		22424:    "two controllers deleted one pod",
		22747:    "two controllers deleted the only pod",
		23755:    "a voter that the last status called a learner was not repaired, in a cluster of two",
		24908:    "the bootstrap record was wiped before the cluster was published to clients",
		301285:   "a quorum came back while a recovery looked at it",
		100598:   "a cache that was behind noted an older version on a volume than runs on it",
		3167:     "a recovery member was lost with its PVC after the cutover, and an empty one took its place",
		40084:    "a kubelet that was cut off forgot that a container had to restart with another image",
		47853:    "a pod was prepared while a Secret could not be read, and no CA was rotated afterwards",
		51675:    "a corrected declaration did not reach a voter that a status from before did not name",
		51459:    "a container started before the API rejected the deletion of its pod as it had been read",
		50412:    "a member whose disk hung was restarted before another member was ready again",
		47636:    "the API was brought back, and a majority that it did not name served behind a cut while a recovery was requested",
		44905:    "the object of a deleted cluster was brought back, and a member whose disk was wiped started on the empty disk",
		41214:    "a backup was restored a second time after nothing was left of what the first restore had made",
		2004607:  "a container started while the update of its pod, which met a conflict, was late",
		2004816:  "the record was lost while the old members of a second restore were decommissioned",
		2007793:  "a user asked to replace the only voter, whose pod could not start before its declaration was corrected",
		2000199:  "the API was brought back from before a cluster had served, and its bootstrap member had the name of a released PVC",
		2003993:  "a restore that had not ended was brought back after its namespace was deleted",
		2009546:  "Kubernetes rejected the successor of a member whose node was drained",
		2012759:  "a member whose disk hung was cut off together with the controller",
		2013794:  "the API was brought back from before the request for another CA, and the old CA was dropped",
		2017680:  "etcd carried out the addition of a second voter after the controller had given it up",
		2015517:  "a record lost its annotations and the UID of its cluster while the bootstrap member started",
		2016682:  "the controller did not reach a quorum that served for half an hour",
		2020787:  "a controller with a cache from before a restore started the old members again",
		2032567:  "the disk of a learner hung right before it was promoted, and it never heard that it votes",
		2034803:  "a cluster was stopped while its last backup was restored, and woken again",
		2047796:  "a cluster was stopped when its second voter was added to an etcd without learners, and no status named that voter",
		2048883:  "the record was lost while no member responded, and a restore had begun when they came back",
		2054801:  "the second voter of an etcd without learners was started again before the first one responded",
		2055942:  "the PVC of the only member was deleted while its pod could not start",
		2080968:  "the first voter of an etcd without learners was upgraded while the second one had not started",
		2095788:  "all members were lost, and again what the restore of the last backup had made",
		2101334:  "the pod of the bootstrap member lost its labels before a status named that member",
		5014520:  "the API brought a deleted cluster back whose CA and certificates garbage collection had deleted",
		6000408:  "the Secret of the CA was deleted alone, and the next CA signed before any member trusted it",
		5009420:  "a cache stood still during the restart of the last member at a newer version, and that member was lost before it was seen to run it",
		7001379:  "another member was requested in the place of one whose node was down, in an etcd without learners",
		7005785:  "the PVC of the bootstrap member was deleted on a lost node before the cluster was published to clients",
		6001897:  "a controller was stopped twice for a minute right after all members were lost",
		6001805:  "two controllers filled recovery members at once, and the abandoned one was created again",
		7002672:  "a cluster was stopped before its bootstrap member, whose node was down, had responded",
		9108514:  "an upgraded member lost its pod, and the API had been brought back from before another member was removed",
		9108292:  "a member was replaced, and the API that was brought back named it as replaced after it had started again",
		9205026:  "the pod of the last member had lost its labels, and the cluster was about to restore its last backup",
		9224328:  "one of two voters removed the other one, which led, and had not applied that when it responded",
		9225379:  "the API lost a cluster, and garbage collection had just deleted the pod that waited for a new member",
		9234934:  "a learner was damaged while its promotion waited for a disk that hung",
		9242854:  "the Secret of the CA was deleted, and a cache from before the first pod showed no member that did not trust the next CA",
		9252198:  "the disk of a learner that had started was wiped while its pod could not start",
		9254437:  "a learner was out of reach for half an hour, and its promotion was requested twice a second",
		9312232:  "the name of the record was taken, and its creation was attempted every 15 s for ever",
		9874041:  "the second voter of an etcd without learners was created again for its data while the first one, which awaits it, was out of reach",
		9276409:  "a user cancelled an operation that waited in a hibernated cluster after the faults had ended",
		9377629:  "a node was down when a cut that it was part of ended, and Kubernetes called it ready",
		9725180:  "a volume still grew when a hibernated cluster was judged at rest",
		6946138:  "the bootstrap member lost its labels, and the cluster was declared to have no members before it had served",
		9403243:  "a member was removed, and those that stayed were cut off before a status named them alone",
		4291398:  "a voter was removed, the API was brought back from before that, and the only voter was cut off",
		9305868:  "the source of a recovery restarted, and the API was brought back from before the source had joined",
		9622184:  "two controllers restarted members of one cluster within ten milliseconds",
		9614040:  "the request for the live object of a key that was held back for long took a minute",
		9607427:  "a cluster that kept its PVCs was deleted, and an API from before it had served was brought back while it was declared to have no members",
		9593505:  "the API was brought back to what a cache that was behind showed, and a later write was waited for without end",
		9650064:  "the second voter of an etcd without learners lost its pod before it joined, and the first one did not respond without it",
		9944716:  "a restore was requested, and the version changed to one that cannot raise the revision before the restore began",
		9885907:  "a voter was lost while the pod of a member that had been added as a learner was labelled a voter",
		9903202:  "a person had chosen the volume that a recovery reads, the volume was lost, and the only other member did not respond",
		9992688:  "a voter that had not told its name yet restarted while the controller did not reach another voter",
		10040367: "a pod lost its labels while its member did not trust the new CA yet",
		10052928: "the automatic restore of a loss had ended, and another restore was abandoned after it",
		9985786:  "the API was brought back from before a voter joined, and by the lists of the members the quorum was lost",
		9986789:  "a second voter of an etcd without learners was added and not admitted when another voter was lost",
		10028364: "a pod could not start before its declaration was corrected, its PVC was being deleted, and another voter was lost",
		10238975: "a user forced the deletion of the pod whose volume a recovery was about to read",
		10245778: "the recovery member of a restore was lost while the last old member ended, and another controller filled it again",
		10429352: "the API was brought back to before a deleted cluster had served, and again to after it had, while its pods were made again",
		10433176: "all members of a cluster were lost while the PVCs of one with its name before it were retained",
		10452288: "a controller with an old cache released the PVC of a second voter while another controller added its member",
		10452362: "the second voter of an etcd without learners lost its pod, and PVCs of a cluster with its name before it were retained",
		10455749: "a controller with an old cache prepared a pod in the place of a learner whose pod was evicted",
		10472730: "the record of a cluster that the API no longer knew named its owner only in its content",
		10582606: "a controller with a cache from before the API was brought back hibernated a cluster, as the same generation had said then",
		10584999: "the API was brought back to before a status had named a member, and the pod of the second voter was made for data",
		10592998: "the record was lost and the second voter, which had not started, lost its pod, before the cluster was published",
		10608603: "the quorum was lost between the addition of a learner and the admission of its pod",
		10625445: "a member started with the newer version while its PVC was marked for the older one, and the cluster hibernated",
		10628022: "a bootstrap member was recorded by one controller while another made its pod again, which a user had deleted by force",
		10840701: "a container ended before the kubelet replaced it for another image, and that image was taken back",
		10856687: "a voter of an etcd without learners was added and not admitted, and with it the only other one that was left had a quorum",
		10913196: "a smaller size was declared while the last member of an upgrade served and clients were not sent to it yet",
		10888077: "a smaller size was declared between the last look at the spec and the restart of a member",
		10104770: "a controller with a cache from before the end of a recovery guarded its recovery member again",
		10107540: "the pod of a hibernated cluster whose PVC was being deleted crashed every five minutes",
		10040162: "a voter had not read of a promotion, and would have won an election by its own list",
		9961930:  "the clock of a controller was fast, so that a member counted as away too early",
		9995964:  "the clock of a controller was fast while a node was off, in an etcd without learners",
		9807809:  "the source of a recovery without volumes restarted before it was read, and another member had as much",
		9808474:  "the recovery member of a restore was evicted before it was behind the Services, and the budget did not count it",
		9709869:  "two pods were admitted as the second voter of an etcd without learners, one after the other",
		9701602:  "the recovery member of a restore lost its volume during the cutover, and Kubernetes rejected its next pod",
		9664306:  "a voter was removed, the API was brought back from before that, and the disk of the only voter hung",
		9678901:  "the PVC of the second voter of an etcd without learners was being deleted when it had joined, and a third voter was to join",
		9588582:  "the pod of a recovery member was created when its PVC had been lost",
		9573081:  "a cluster was deleted while the API was from before it had its finalizer, and its CA stayed",
		9573834:  "a pod had lost its labels and its node was cut off, and no status named its member any more when a restore fenced the others",
		9561305:  "a container ended when its image changed, started with the new one, and its node was cut off",
		9556718:  "the source of a recovery without volumes restarted while it was read, and etcd never responds without a quorum after that",
		9467230:  "the pod of the second voter was deleted before it had joined, and nothing else said that it had not",
		9354570:  "all members and the record were lost, and an API from before two restores had the first one carried out again",
		9403320:  "the record was lost, and with it that a recovery had ended, while most new members were lost",
		43002791: "a voter had lost its pod and its data, and the disk of one of the two others hung while no client wrote",
		45003951: "the published recovery member was lost with its data, and the old members came back",
		44044505: "the declaration changed for a leader that the controller had not reached for minutes",
		44025469: "a member was cut off with a full database, and the API was brought back from before it was filled",
		44021002: "a member restarted with a full database, and the API was brought back from before it was filled",
		44022017: "a member with a full database lost its disk, and the API was brought back from before it was filled",
		44023479: "a member with a full database was cut off while the cache of the controller was old",
		44034749: "two controllers with other clocks waited for a member that was cut off with a full database",
		44011362: "the volume that a recovery had read was lost, and a person ended the recovery as the status said, by its PVC",
		44014241: "the volume that a recovery was about to read was lost, and its recovery member had a PVC",
		44026641: "the same while the pod of the recovery member crashed",
		44014244: "all that a recovery read was lost, and its recovery member had a PVC",
		44020618: "all that a recovery read was lost while the pod of the recovery member was rejected",
		44025694: "all that a recovery read was lost, and its recovery member crashed on a retained PVC",
		44027563: "the recovery member was lost before it was published, and the PVC of the member before it was still fenced",
		44047786: "all that a recovery read was lost, and the pod of its recovery member was deleted again and again",
		44025350: "the quorum was lost, and two members that did not respond restarted as declared, one after the other",
		44011893: "the source of a recovery was lost, and another member ran and never responded without a quorum",
		44010467: "all Secrets were deleted, and a second controller began with a cache from before the cluster had pods",
		44042714: "all Secrets were deleted while the bootstrap member started, which then rejected the controller",
		46020771: "all was lost in the new etcd of a recovery, and a restore followed that of the old members",
		46028886: "a request for another CA came back beside a CA that was issued after all Secrets had been deleted",
		46032701: "the version changed while a restore filled its recovery member, which then lost its pod",
		46059943: "the source of a recovery lost its pod, and the member that responded had lost more",
		46073420: "a member was evicted with its data, and another member was out of reach when the version changed",
		50003900: "the API forgot a restore that the record named, and a person then asked for a recovery",
		50001455: "of two voters one was out of the controller's reach and had another declaration, and the other responded before it was ready",
		92326:    "a declaration cost the bootstrap member before a status had named it",
		8240:     "a CA was lost while members trusted only the CA before it, which no bundle held any more",
	} {
		if r := Run(schedules.New(seed), Variant{}, timeline.NewStats(), false); r.Violation != nil {
			t.Errorf("seed %d, in which %s: %v", seed, what, r.Violation)
		}
	}
}

// TestSchedulesAdmittingAll lets users declare what validation rejects: the controller must
// not rely on the checks of validation.
func TestSchedulesAdmittingAll(t *testing.T) {
	n := *scheduleCount / 4
	if testing.Short() || raceEnabled {
		n = min(n, 25)
	}
	variant := Variant{Name: "admitting all", admitsAll: true}
	total, failed := playAll(n, *firstSeed, variant, nil)
	t.Logf("%v\n%d violations", total, len(failed))
	for _, r := range failed[:min(len(failed), 5)] {
		report(t, r, variant)
	}
}

// notSimulated are the rules about what need not happen in the simulated world. The
// enumeration of pkg/planner/cluster goes through every rule.
var notSimulated = map[planner.RuleName]bool{
	planner.RuleDeleting:         true, // nothing holds a cluster back that is deleted
	planner.RuleTakeOver:         true, // see TestTakeOverSchedules
	planner.RuleUnmanagedMembers: true, // see TestIdentitySchedules
	planner.RuleClusterID:        true, // see TestIdentitySchedules
}

// requireEveryRule makes sure that every rule of the planner has decided in some schedule.
func requireEveryRule(t *testing.T, total *timeline.Stats) {
	t.Helper()
	for _, rule := range planner.Rules() {
		if total.Rules[string(rule)] == 0 && !notSimulated[rule] {
			t.Errorf("rule %s never decided", rule)
		}
	}
	if total.Drained == 0 {
		t.Error("no lasting drain has moved the members")
	}
}

// playAll plays n schedules on all processors; it stops early after a violation that
// is enough, if there is such a thing.
func playAll(n int, first uint64, variant Variant, enough func(*timeline.Violation) bool) (*timeline.Stats, []Result) {
	total := timeline.NewStats()
	var failed []Result
	var mu sync.Mutex
	var done atomic.Bool
	seeds := make(chan uint64)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			stats := timeline.NewStats()
			for seed := range seeds {
				if r := Run(variant.schedule(seed), variant, stats, false); r.Violation != nil {
					mu.Lock()
					failed = append(failed, r)
					mu.Unlock()
					done.Store(done.Load() || enough != nil && enough(r.Violation))
				}
			}
			mu.Lock()
			total.Add(stats)
			mu.Unlock()
		})
	}
	for i := range n {
		if done.Load() {
			break
		}
		seeds <- first + uint64(i)
	}
	close(seeds)
	workers.Wait()
	slices.SortFunc(failed, func(a, b Result) int { return cmp.Compare(a.Schedule.Seed, b.Schedule.Seed) })
	return total, failed
}

// report prints what is needed to understand a violation.
func report(t *testing.T, r Result, variant Variant) {
	t.Helper()
	small := Shrink(r.Schedule, variant, r.Violation.Rule)
	replayed := Run(small, variant, timeline.NewStats(), true)
	trace := replayed.Trace
	if len(trace) > 60 {
		trace = trace[len(trace)-60:]
	}
	t.Errorf("%v\nshrunk to %v\n%v\n%s\nreplay: go test ./test/simulation -run TestReplay -seed=%d -v",
		r.Violation, small, replayed.Violation, strings.Join(trace, "\n"), r.Schedule.Seed)
}

// TestReplay plays one schedule again and prints everything that happened.
func TestReplay(t *testing.T) {
	if *seed == 0 {
		t.Skip("give the schedule with -seed=N")
	}
	plan := schedules.New(*seed)
	r := Run(plan, Variant{}, timeline.NewStats(), true)
	t.Logf("%v\n%s", plan, strings.Join(r.Trace, "\n"))
	if r.Violation != nil {
		report(t, r, Variant{})
	}
}

// TestSameSeedSameTrace makes sure that a violation can be looked at again.
func TestSameSeedSameTrace(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		first := Run(schedules.New(seed), Variant{}, timeline.NewStats(), true)
		second := Run(schedules.New(seed), Variant{}, timeline.NewStats(), true)
		if !slices.Equal(first.Trace, second.Trace) {
			for i := range min(len(first.Trace), len(second.Trace)) {
				if first.Trace[i] != second.Trace[i] {
					t.Fatalf("seed %d differs at line %d:\n%s\n%s", seed, i, first.Trace[i], second.Trace[i])
				}
			}
			t.Fatalf("seed %d: %d and %d lines", seed, len(first.Trace), len(second.Trace))
		}
	}
}
