// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"html"
	"io"
	"math"
)

// Geometry of a chart in pixels.
const (
	chartLabels = 330
	chartBars   = 520
	chartBar    = 9
	chartLine   = 30
	chartTop    = 64
)

// bar is one line of a chart.
type bar struct {
	label              string
	aggregated, direct spread
}

// bars returns the ratios of a stage.
func bars(lines []*series) []bar {
	out := make([]bar, 0, len(lines))
	for _, s := range lines {
		out = append(out, bar{label: s.name(), aggregated: s.ratio(servingAggregated), direct: s.ratio(servingDirect)})
	}
	return out
}

// writeChart writes the ratios as an SVG: bars that begin at 1, where both cost the same, on a
// logarithmic scale, so that half and double are equally long. A thin line is the range of the
// rounds.
func writeChart(out io.Writer, title string, all []bar) {
	low, high := 0.5, 2.0
	for _, b := range all {
		for _, s := range []spread{b.aggregated, b.direct} {
			if s.Low > 0 && !math.IsInf(s.High, 0) {
				low, high = min(low, s.Low), max(high, s.High)
			}
		}
	}
	x := func(ratio float64) float64 {
		return chartLabels + chartBars*math.Log(max(ratio, low)/low)/math.Log(high/low)
	}
	width, height := chartLabels+chartBars+80, chartTop+chartLine*len(all)+10
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(out, `<rect width="100%%" height="100%%" fill="white"/><text x="10" y="20" font-size="15">%s</text>`+"\n", html.EscapeString(title))
	const dark, pale = "#1f6feb", "#8fb8f5"
	fmt.Fprintln(out, `<text x="10" y="42">CPU time, CRD ÷ API server; above 1 the CRD costs more</text>`)
	const legend = `<text x="%d" y="42" fill="%s">■ %s</text>` + "\n"
	fmt.Fprintf(out, legend, chartLabels+80, dark, "through the aggregator")
	fmt.Fprintf(out, legend, chartLabels+250, pale, "direct")
	const grid = `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#ccc"/>` + "\n"
	const mark = `<text x="%.1f" y="%d" text-anchor="middle" fill="#666">%g</text>` + "\n"
	for tick := math.Exp2(math.Ceil(math.Log2(low))); tick <= high; tick *= 2 {
		fmt.Fprintf(out, grid, x(tick), chartTop-4, x(tick), height-6)
		fmt.Fprintf(out, mark, x(tick), chartTop-7, tick)
	}
	for i, b := range all {
		y := chartTop + chartLine*i
		fmt.Fprintf(out, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", chartLabels-8, y+chartBar+6, html.EscapeString(b.label))
		writeBar(out, x, y+2, b.aggregated, dark)
		writeBar(out, x, y+2+chartBar+2, b.direct, pale)
	}
	fmt.Fprintln(out, "</svg>")
}

func writeBar(out io.Writer, x func(float64) float64, y int, s spread, color string) {
	if math.IsNaN(s.Median) || s.Median <= 0 {
		return
	}
	from, to := min(x(1), x(s.Median)), max(x(1), x(s.Median))
	middle := float64(y) + chartBar/2.0
	fmt.Fprintf(out, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/><line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#333"/><text x="%.1f" y="%d" font-size="10">%s</text>`+"\n",
		from, y, max(to-from, 1), chartBar, color, x(s.Low), middle, x(s.High), middle, max(to, x(s.High))+4, y+chartBar, number(s.Median))
}
