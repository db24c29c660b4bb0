/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file has the version of the module and of the tool, which are released
 * together.  The newest release in CHANGELOG.md, once there is one, has the
 * same version.
 */

#ifndef BLOOM_VERSION_H
#define BLOOM_VERSION_H


#define BLOOM_VERSION  "0.1.0"


#endif /* BLOOM_VERSION_H */
