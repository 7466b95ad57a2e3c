package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// imageUser owns the process of a container, and the folder for its data. It is the user that
// other images without a shell call nonroot.
const imageUser = 65532

// imageEnvironment sets the addresses of serve, and those that healthcheck probes.
var imageEnvironment = []string{"TABLETOP_PUBLIC=true", "TABLETOP_BIGTABLE=0.0.0.0:8086", "TABLETOP_DYNAMODB=0.0.0.0:8000"}

// writeImages writes the image of the program.
func writeImages(_ context.Context, r *release) error { return r.writeImages("image", "", r.image) }

// writeCompatImages writes the image that takes the place of those of gcloud and DynamoDB Local.
func writeCompatImages(_ context.Context, r *release) error {
	return r.writeImages("compat-image", "-compat", r.compatImage)
}

// writeImages writes the image of each Linux platform: all of them as an OCI layout, which
// registries take, and each as an archive for docker load, with the suffix after its version.
func (r *release) writeImages(folder, suffix string, imageOf func(build) (v1.Image, error)) error {
	tag, err := name.NewTag("tabletop:" + r.version + suffix)
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	found := false
	for _, b := range r.builds {
		if b.os != "linux" {
			continue
		}
		found = true
		image, err := imageOf(b)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: b.os, Architecture: b.arch}},
		})
		var archive bytes.Buffer
		if err := tarball.Write(tag, image, &archive); err != nil {
			return err
		}
		if err := r.write(archive.Bytes(), fmt.Sprintf("tabletop_%s_%s_%s.tar", r.version, folder, b.arch)); err != nil {
			return err
		}
	}
	if !found {
		return errors.New("no platform is a Linux")
	}
	// The layout holds one index, which has a digest of its own: that of the image in a registry.
	at, err := layout.Write(filepath.Join(r.out, folder), mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return err
	}
	return at.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": r.version + suffix}))
}

// image returns the image of a platform.
func (r *release) image(b build) (v1.Image, error) {
	layer, err := imageLayer([]file{
		{name: "LICENSE", data: r.license},
		{name: "NOTICE", data: b.notice},
		{name: "tabletop", data: b.programs["tabletop"], executable: true},
	}, []tar.Header{
		{Name: "data/", Mode: 0o755, Uid: imageUser, Gid: imageUser}, // a volume takes its owner from it
		{Name: "tmp/", Mode: 0o1777},
	}, r.time)
	if err != nil {
		return nil, err
	}
	at := v1.Time{Time: r.time}
	image, err := mutate.ConfigFile(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), &v1.ConfigFile{
		Architecture: b.arch,
		OS:           b.os,
		Created:      at,
		RootFS:       v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Entrypoint:   []string{"/tabletop"},
			Cmd:          []string{"serve"},
			Env:          imageEnvironment,
			User:         fmt.Sprintf("%d:%[1]d", imageUser),
			ExposedPorts: map[string]struct{}{"8086/tcp": {}, "8000/tcp": {}},
			Healthcheck:  &v1.HealthConfig{Test: []string{"CMD", "/tabletop", "healthcheck"}, Interval: 10 * time.Second, Timeout: 5 * time.Second},
			Labels: map[string]string{
				"org.opencontainers.image.title":       "Tabletop",
				"org.opencontainers.image.description": "A Cloud Bigtable emulator with a DynamoDB endpoint over the same rows",
				"org.opencontainers.image.source":      "https://github.com/tabletop-emu/tabletop",
				"org.opencontainers.image.licenses":    "Apache-2.0",
				"org.opencontainers.image.version":     r.version,
				"org.opencontainers.image.revision":    r.source.commit,
				"org.opencontainers.image.created":     r.time.Format(time.RFC3339),
			},
		},
	})
	if err != nil {
		return nil, err
	}
	return r.append(image, layer)
}

func (r *release) append(image v1.Image, layer v1.Layer) (v1.Image, error) {
	return mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: r.time}, CreatedBy: "make dist"}})
}

// compatHome is the working directory in the image of DynamoDB Local, which volumes and -dbPath name.
const compatHome = "home/dynamodblocal/"

// compatImage returns the image of a platform that answers the commands for the images of gcloud and
// of DynamoDB Local. It adds to the other image links whose names the program recognizes, so that a
// registry stores the program once.
func (r *release) compatImage(b build) (v1.Image, error) {
	image, err := r.image(b)
	if err != nil {
		return nil, err
	}
	layer, err := imageLayer([]file{
		{name: "stand-in", link: "tabletop"},
		{name: "bin/bash", link: "../tabletop"},
		{name: "bin/sh", link: "../tabletop"},
		{name: "usr/bin/gcloud", link: "../../tabletop"},
		{name: "usr/bin/java", link: "../../tabletop"},
	}, []tar.Header{
		{Name: compatHome, Mode: 0o755, Uid: imageUser, Gid: imageUser},
		{Name: compatHome + "data/", Mode: 0o755, Uid: imageUser, Gid: imageUser},
	}, r.time)
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config := file.DeepCopy().Config
	config.Entrypoint, config.Cmd = []string{"/stand-in"}, []string{"-jar", "DynamoDBLocal.jar", "-inMemory"}
	config.WorkingDir = "/" + strings.TrimSuffix(compatHome, "/")
	config.Env = []string{"PATH=/usr/bin:/bin:/"}
	config.ExposedPorts = map[string]struct{}{"8000/tcp": {}}
	config.Healthcheck = nil // its command decides which port is open
	config.Labels["org.opencontainers.image.title"] = "Tabletop in place of gcloud and DynamoDB Local"
	if image, err = mutate.Config(image, config); err != nil {
		return nil, err
	}
	return r.append(image, layer)
}

// imageLayer returns a layer of an image with files and folders.
func imageLayer(files []file, folders []tar.Header, at time.Time) (v1.Layer, error) {
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	if err := writeSorted(w, files, tar.Header{ModTime: at}); err != nil {
		return nil, err
	}
	for _, folder := range folders {
		folder.Typeflag, folder.ModTime = tar.TypeDir, at
		if err := w.WriteHeader(&folder); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text.Bytes())), nil },
		tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}
