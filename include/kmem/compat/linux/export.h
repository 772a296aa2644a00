/* SPDX-License-Identifier: MIT */
/* linux/export.h - everything is exported already */
#ifndef KMEM_COMPAT_LINUX_EXPORT_H
#define KMEM_COMPAT_LINUX_EXPORT_H

#include <linux/bug.h>

#ifndef EXPORT_SYMBOL
#define EXPORT_SYMBOL(symbol)		BUILD_BUG_ON(0)
#endif
#ifndef EXPORT_SYMBOL_GPL
#define EXPORT_SYMBOL_GPL(symbol)	BUILD_BUG_ON(0)
#endif

#endif /* KMEM_COMPAT_LINUX_EXPORT_H */
