/* SPDX-License-Identifier: MIT */
/* linux/init.h - sections of start-up code mean nothing here */
#ifndef KMEM_COMPAT_LINUX_INIT_H
#define KMEM_COMPAT_LINUX_INIT_H

#ifndef __init
#define __init
#endif
#ifndef __exit
#define __exit
#endif
#ifndef __initdata
#define __initdata
#endif
#ifndef __initconst
#define __initconst
#endif

#endif /* KMEM_COMPAT_LINUX_INIT_H */
