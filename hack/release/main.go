// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

const usage = `Usage:
  release image --ref REFERENCE --out FILE --entrypoint /PROGRAM --license FILE PLATFORM=DIRECTORY...
      writes the programs of each directory as one image for several platforms (an OCI archive)
  release statement --checksums FILE --source URI --commit COMMIT --version VERSION --key FILE --out FILE
      signs which files were built from which commit
  release sign --image FILE --out FILE --key FILE [FILE...]
      writes signatures of an OCI archive's images to another one, and the signature of each FILE to FILE.sig, as cosign does
  release krew --checksums FILE --version VERSION --download URL --source URI --out etcd.yaml PLATFORM...
      writes the manifest with which krew installs the kubectl plugin; URL/ARCHIVE is where users download
  release verify --checksums FILE --statement FILE --key FILE
      verifies that statement with the public key
A private key is PEM, of ECDSA, Ed25519 or RSA. If it is encrypted, RELEASE_KEY_PASSWORD has its password.
`

// errUsage means that the arguments do not fit.
var errUsage = errors.New("unexpected arguments")

func main() {
	err := run(os.Args[1:])
	if errors.Is(err, errUsage) || errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(os.Stderr, usage)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	switch command, rest := args[0], args[1:]; command {
	case "image":
		return imageCommand(rest)
	case "statement":
		return statementCommand(rest)
	case "sign":
		return signCommand(rest)
	case "krew":
		return krewCommand(rest)
	case "verify":
		return verifyCommand(rest)
	default:
		return fmt.Errorf("%w: %q is no command", errUsage, command)
	}
}
