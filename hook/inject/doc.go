// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package inject is what gpushare-hook does in the createContainer stage: it
// finds the copies of libcuda and libnvidia-ml that an image ships itself,
// mounts our libraries over them, and proves that the container's loader will
// find ours.
//
// The image is hostile and the hook is root of the host, so it owns these rules:
// all it knows comes from its arguments, nothing from the image's environment or
// config.json; a path of the image is resolved once, by openat2 below the root,
// and from then on is a descriptor; only regular files are opened, and read up
// to a bound; nothing is created in the image, nothing of it is executed; a
// mount gets its attributes before it is attached, descriptor to descriptor.
// Whatever it cannot prove, it refuses with one line.
//
// It looks where the loader looks: the run paths of the entry point, the
// LD_PRELOAD and LD_LIBRARY_PATH of the spec, ld.so.preload, ld.so.cache, the loader's own directories, and
// CUDA's compat directories. It cannot know the run paths of other programs, a
// variable set later, or a file under another path that a program opens by its
// absolute name.
package inject
