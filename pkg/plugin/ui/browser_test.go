// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"bytes"
	"context"
	"flag"
	"html"
	"image"
	_ "image/png" // what the browser writes
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/plugintest"
)

var screenshots = flag.String("screenshots", "", "directory in which screenshots stay")

// browserTime is how long a browser may take on a machine that is busy.
const browserTime = 3 * time.Minute

// browse loads the page in a real browser and returns what it prints.
func (p *page) browse(args ...string) string {
	p.t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		p.t.Skip("chromium is missing; hack/packages.sh installs it")
	}
	ctx, cancel := context.WithTimeout(p.t.Context(), browserTime)
	defer cancel()
	dir := p.t.TempDir()
	// The virtual time stands still while the page waits for a response. The sandbox needs
	// rights that root in a container does not have; the page is our own.
	command := exec.CommandContext(ctx, chromium, append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--hide-scrollbars", "--disable-lcd-text", "--user-data-dir=" + dir, "--virtual-time-budget=1500",
	}, append(args, p.URL())...)...)
	command.Env = append(os.Environ(), "HOME="+dir, "TZ=UTC")
	var out, errOut bytes.Buffer
	command.Stdout, command.Stderr = &out, &errOut
	if err := command.Run(); err != nil {
		p.t.Fatalf("%v: %s", err, errOut.String())
	}
	return out.String()
}

var (
	tags   = regexp.MustCompile(`<[^>]*>`)
	spaces = regexp.MustCompile(`\s+`)
)

// textOf returns the text of a page. Elements end words.
func textOf(dom string) string {
	return spaces.ReplaceAllString(html.UnescapeString(tags.ReplaceAllString(dom, " ")), " ")
}

// TestBrowser loads the page in Chromium: the script runs under the policy, and its text is that
// of the status.
func TestBrowser(t *testing.T) {
	for name, c := range map[string]struct {
		state *plugintest.State
		texts []string
		title string
	}{
		"healthy": {plugintest.Healthy(), []string{
			"prod/main Healthy", "3 of 3 voters serve and follow main-a7k2", "last backup main-scheduled, 9h ago, revision 81233, verified by Checksum",
			"✔ main-a7k2 leader healthy 3.6.16 1.0Gi Running node-1", "Backups NAMESPACE NAME CLUSTER STORAGE PHASE MESSAGE prod nightly main S3 Succeeded", "main-20260304 main etcdbackup/nightly Running waits for the pod",
		}, "etcd clusters"},
		"degraded": {plugintest.Degraded(), []string{
			"• Degraded 2 of 3 voters serve; main-q3m8 does not respond", "✖ main-q3m8 voter no response", "no response: dial tcp 10.0.0.3:2379: connect: connection refused",
			"Next steps etcd of member main-q3m8 restarts again and again: see its last log kubectl -n prod logs main-q3m8 -c etcd --previous --tail=50",
		}, "(1) etcd clusters"},
		"quorum-lost": {plugintest.QuorumLost(), []string{
			"✖ QuorumLost no read passed a quorum: 1 of 3 voters responds", "1 too few for a quorum", "blocked by QuorumLost for 4m", "kubectl etcd recover main -n prod --dry-run",
		}, "(1) etcd clusters"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPage(t, c.state)
			dom := p.browse("--dump-dom")
			text := textOf(dom)
			for _, want := range append(c.texts, "As of ") {
				if !strings.Contains(text, want) {
					t.Errorf("%q is missing", want)
				}
			}
			for _, want := range []string{"<title>" + c.title + "</title>", `aria-busy="false"`, `<th scope="col">MEMBER</th>`, `<section id="cluster-0" aria-labelledby="cluster-0-title">`, `role="alert" hidden=""`} {
				if !strings.Contains(dom, want) {
					t.Errorf("%q is missing", want)
				}
			}
			if t.Failed() {
				t.Log(text)
			}
		})
	}
}

// TestNoScriptFromData: names and messages are text, whatever they hold.
func TestNoScriptFromData(t *testing.T) {
	state := plugintest.Degraded()
	state.Health.Message = `<img src=x onerror="document.title='taken'"><script>document.title='taken'</script>`
	p := newPage(t, state)
	dom := p.browse("--dump-dom")
	if strings.Contains(dom, "<img") || strings.Contains(dom, "<title>taken") || !strings.Contains(dom, "&lt;img src=x") {
		t.Errorf("the message is not text:\n%s", dom)
	}
}

// TestScreenshots draws the page, wide and narrow, light and dark.
func TestScreenshots(t *testing.T) {
	for name, c := range map[string]struct {
		state *plugintest.State
		args  []string
		width int
	}{
		"ui-degraded":    {plugintest.Degraded(), []string{"--window-size=1280,860"}, 1280},
		"ui-quorum-lost": {plugintest.QuorumLost(), []string{"--window-size=1280,925", "--blink-settings=preferredColorScheme=0"}, 1280},
		"ui-narrow":      {plugintest.Upgrading(), []string{"--window-size=500,1400"}, 500},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPage(t, c.state)
			dir := *screenshots
			if dir == "" {
				dir = t.TempDir()
			}
			file := filepath.Join(dir, name+".png")
			p.browse(append(c.args, "--screenshot="+file)...)
			content, err := os.Open(filepath.Clean(file))
			if err != nil {
				t.Fatal(err)
			}
			defer content.Close()
			drawn, _, err := image.Decode(content)
			if err != nil {
				t.Fatal(err)
			}
			// An empty page has one color.
			colors := map[any]bool{}
			for x := 0; x < drawn.Bounds().Dx(); x += 3 {
				for y := 0; y < drawn.Bounds().Dy(); y += 3 {
					colors[drawn.At(x, y)] = true
				}
			}
			if drawn.Bounds().Dx() != c.width || len(colors) < 20 {
				t.Errorf("%v with %d colors", drawn.Bounds(), len(colors))
			}
		})
	}
}
