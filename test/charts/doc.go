// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package charts tests the Helm charts in charts/ with the libraries of Helm 3 and Helm 4.
//
//   - The defaults are artifacts/install, object by object (golden_test.go).
//   - Each value of a README changes what the README says (values_operator_test.go,
//     values_cluster_test.go).
//   - Wrong values are rejected with a message that names them (reject_test.go).
//   - A storage that does not have the objects is rejected (storage_test.go).
//   - Install, upgrade, rollback and uninstall leave a release that Helm can work with
//     (lifecycle_test.go).
//   - README, values.yaml and values.schema.json agree (documentation_test.go).
//
// It is a module of its own, so that the programs do not depend on the versions of Helm. The
// program in pack writes the archives of the charts. Start at render_test.go.
package charts
