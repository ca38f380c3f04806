module github.com/etcd-operator/etcd-operator/hack/local

go 1.26.0

require golang.org/x/sys v0.49.0

require golang.org/x/mod v0.42.0
