// The Go clients that tests/clients builds, in the versions that they were tried in.
module clients

go 1.18

require (
	github.com/czerwonk/ovirt_api v0.0.0-20190114183432-31037b874427
	github.com/ovirt/go-ovirt v0.0.0-20220427092237-114c47f2835c
	github.com/ovirt/go-ovirt-client/v3 v3.2.0
)
