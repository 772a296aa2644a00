/* SPDX-License-Identifier: MIT */
/* The operators of C++ on libkmem-malloc.so; prints TAP. cases.md C6, C8, E10, J7. */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <thread>
#include <vector>

static bool failed;
static int nr_cases;

static void result(bool ok, const char *name)
{
	std::printf("%s %d - %s\n", ok ? "ok" : "not ok", ++nr_cases, name);
	failed |= !ok;
}

/* Before main() and after it, on both sides of what the library itself does. */
struct Early {
	std::map<int, std::string> *names = new std::map<int, std::string>;
	Early() { (*names)[1] = std::string(1000, 'x'); }
	~Early() { delete names; delete[] new char[100000]; }
};
static Early early __attribute__((init_priority(101)));

struct alignas(256) Wide {
	char bytes[300];
};

static volatile std::size_t too_much = (std::size_t)1 << 60;

/* A block that nobody sees need not be allocated, says the language. */
static char *volatile seen;

static bool throws(std::size_t size)
{
	try {
		seen = new char[size];
		delete[] seen;
	} catch (const std::bad_alloc &) {
		return true;
	}
	return false;
}

static bool every_form_allocates()
{
	Wide *one = new Wide, *many = new Wide[10];
	Wide *quiet = new (std::nothrow) Wide;
	char *text = new (std::nothrow) char[77];
	bool ok = (std::uintptr_t)one % 256 == 0 && (std::uintptr_t)many % 256 == 0 &&
		  (std::uintptr_t)quiet % 256 == 0 && (std::uintptr_t)text % 16 == 0;

	delete one;
	delete[] many;
	delete quiet;
	delete[] text;
	::operator delete(::operator new(5000), std::size_t(5000));
	::operator delete(::operator new(5000, std::align_val_t(4096)), std::size_t(5000),
			  std::align_val_t(4096));
	return ok;
}

static int nr_calls;
static void give_up_at_third()
{
	if (++nr_calls == 3)
		std::set_new_handler(nullptr);
}

static void give_up_by_exception()
{
	nr_calls++;
	throw std::bad_alloc();
}

static bool handler_is_asked_again_and_again()
{
	nr_calls = 0;
	std::set_new_handler(give_up_at_third);
	return throws(too_much) && nr_calls == 3;
}

static bool nothrow_form_catches_what_the_handler_throws()
{
	char *p;

	nr_calls = 0;
	std::set_new_handler(give_up_by_exception);
	p = new (std::nothrow) char[too_much];
	std::set_new_handler(nullptr);
	return !p && nr_calls == 1;
}

static bool wrong_size_of_delete_does_no_harm()
{
	for (int i = 0; i < 1000; i++)
		::operator delete(::operator new(100), std::size_t(40));
	return true;
}

static bool containers_work_in_threads()
{
	std::vector<std::thread> threads;
	bool ok[4] = {};

	for (int t = 0; t < 4; t++)
		threads.emplace_back([t, &ok] {
			std::map<int, std::string> m;

			for (int i = 0; i < 20000; i++)
				m[i * 7 % 20000] = std::to_string(i);
			ok[t] = m.size() == 20000 && m[7] == "1";
		});
	for (auto &thread : threads)
		thread.join();
	return ok[0] && ok[1] && ok[2] && ok[3];
}

int main()
{
	std::puts("1..8");
	result(early.names->at(1).size() == 1000, "constructors_before_main_allocate");
	result(every_form_allocates(), "every_form_allocates_with_its_alignment");
	result(throws(too_much), "without_memory_bad_alloc_is_thrown");
	result(!(new (std::nothrow) char[too_much]), "nothrow_form_returns_null");
	result(handler_is_asked_again_and_again(), "new_handler_is_asked_again_and_again");
	result(nothrow_form_catches_what_the_handler_throws(),
	       "nothrow_form_catches_what_the_handler_throws");
	result(wrong_size_of_delete_does_no_harm(), "wrong_size_of_delete_does_no_harm");
	result(containers_work_in_threads(), "containers_work_in_threads");
	return failed;
}
