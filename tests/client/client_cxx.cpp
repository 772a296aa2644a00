// SPDX-License-Identifier: MIT
//
// client_cxx.cpp - the public headers from C++17: overloads, casts, exceptions
// and destructors around them
//
#include <kmem/gfp.h>
#include <kmem/mempool.h>
#include <kmem/slab.h>
#include <kmem/stats.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#define CHECK(cond)							\
	do {								\
		if (!(cond)) {						\
			std::fprintf(stderr, "%s:%d: not true: %s\n",	\
				     __FILE__, __LINE__, #cond);	\
			std::exit(1);					\
		}							\
	} while (0)

namespace {

struct point {
	double x, y, z;
};

struct alignas(128) wide {
	char c[100];
};

void fill_point(void *obj)
{
	*static_cast<point *>(obj) = { 1, 2, 3 };
}

// kmem_cache_create() in each of its forms, resolved by overloading.
void overloads_resolve()
{
	kmem_cache_args args = {};
	const kmem_cache_args &constant = args;
	kmem_cache *s;

	args.align = 32;
	s = kmem_cache_create("cxx_args", 24, &args, SLAB_NO_MERGE);
	CHECK(s && kmem_cache_size(s) == 24);
	kmem_cache_destroy(s);
	s = kmem_cache_create("cxx_const", 24, &constant, 0);
	CHECK(s);
	kmem_cache_destroy(s);
	s = kmem_cache_create("cxx_null", 24, nullptr, 0);
	CHECK(s);
	kmem_cache_destroy(s);
	s = kmem_cache_create("cxx_five", 24, 16, SLAB_NO_MERGE, nullptr);
	CHECK(s);
	kmem_cache_destroy(s);
	s = kmem_cache_create("cxx_sizeof", 24, sizeof(void *), 0, fill_point);
	CHECK(s);
	kmem_cache_destroy(s);
	s = kmem_cache_create("cxx_zero", 24, 0u, SLAB_HWCACHE_ALIGN, nullptr);
	CHECK(s);
	kmem_cache_destroy(s);
	s = kmem_cache_create_usercopy("cxx_user", 64, 0, 0, 8, 16, nullptr);
	CHECK(s);
	kmem_cache_destroy(s);
}

void macros_take_types()
{
	kmem_cache *s = KMEM_CACHE(wide, SLAB_NO_MERGE);
	struct kmem_cache_stats st;

	CHECK(s && !std::strcmp(kmem_cache_name(s), "wide"));
	CHECK(!kmem_cache_stats(s, &st));
	CHECK(st.align == 128 && st.object_size == sizeof(wide));
	kmem_cache_destroy(s);
	s = KMEM_CACHE_USERCOPY(point, 0, y);
	CHECK(s && kmem_cache_size(s) == sizeof(point));
	kmem_cache_destroy(s);
}

// An allocator for the standard containers.
template <class T> struct kmalloc_allocator {
	using value_type = T;

	kmalloc_allocator() = default;
	template <class U> kmalloc_allocator(const kmalloc_allocator<U> &) {}

	T *allocate(std::size_t n)
	{
		void *p = kmalloc_array(n, sizeof(T), GFP_KERNEL);

		if (!p)
			throw std::bad_alloc();
		return static_cast<T *>(p);
	}
	void deallocate(T *p, std::size_t) { kfree(p); }
	template <class U> bool operator==(const kmalloc_allocator<U> &) const
	{
		return true;
	}
	template <class U> bool operator!=(const kmalloc_allocator<U> &) const
	{
		return false;
	}
};

void containers_live_in_kmalloc()
{
	std::vector<std::string, kmalloc_allocator<std::string>> v;
	bool thrown = false;

	for (int i = 0; i < 10000; i++)
		v.push_back(std::to_string(i) + " is longer than a short string");
	for (int i = 0; i < 10000; i++)
		CHECK(v[static_cast<std::size_t>(i)].compare(0, 1, std::to_string(i), 0, 1) == 0);
	try {
		volatile std::size_t too_many = SIZE_MAX / 64;

		(void)kmalloc_allocator<wide>().allocate(too_many);
	} catch (const std::bad_alloc &) {
		thrown = true;
	}
	CHECK(thrown);
}

struct cache_deleter {
	void operator()(kmem_cache *s) const { kmem_cache_destroy(s); }
};

void threads_share_a_cache()
{
	std::unique_ptr<kmem_cache, cache_deleter> s(
		kmem_cache_create("cxx_threads", sizeof(point), 0, SLAB_NO_MERGE,
				  fill_point));
	std::vector<std::thread> threads;
	struct kmem_cache_stats st;

	for (int t = 0; t < 4; t++) {
		threads.emplace_back([&s] {
			std::vector<void *> p(500);

			for (int round = 0; round < 50; round++) {
				CHECK(kmem_cache_alloc_bulk(s.get(), GFP_KERNEL,
							    p.size(), p.data()) == 500);
				for (void *obj : p)
					CHECK(static_cast<point *>(obj)->z == 3);
				kmem_cache_free_bulk(s.get(), p.size(), p.data());
			}
		});
	}
	for (std::thread &t : threads)
		t.join();
	CHECK(!kmem_cache_stats(s.get(), &st));
	CHECK(st.objects == 0);
	CHECK(st.alloc_fastpath + st.alloc_slowpath == 4 * 50 * 500);
}

void *pool_alloc(gfp_t gfp, void *data)
{
	return kmalloc(reinterpret_cast<std::size_t>(data), gfp);
}

void pool_free(void *element, void *)
{
	kfree(element);
}

void pools_take_functions()
{
	mempool_t *pool = mempool_create(3, pool_alloc, pool_free,
					 reinterpret_cast<void *>(std::size_t{ 100 }));
	void *p;

	CHECK(pool);
	p = mempool_alloc(pool, GFP_KERNEL);
	CHECK(p);
	std::memset(p, 1, 100);
	mempool_free(p, pool);
	mempool_destroy(pool);
}

// Objects with static storage use the library before and after main().
struct early {
	char *text;

	early() : text(kstrdup("before main", GFP_KERNEL)) {}
	~early()
	{
		if (std::strcmp(text, "before main"))
			std::abort();
		kfree(text);
	}
} early_bird;

} // namespace

int main()
{
	CHECK(!std::strcmp(early_bird.text, "before main"));
	overloads_resolve();
	macros_take_types();
	containers_live_in_kmalloc();
	threads_share_a_cache();
	pools_take_functions();
	CHECK(kmem_option_set("no_such_option", "1") == -ENOENT);
	std::printf("C++17 as a client: ok (%s)\n", kmem_mode());
	return 0;
}
