#include "calls/errhandlers.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "obj/comm.hpp"
#include "obj/process.hpp"

using namespace weft;
using namespace weft::obj;
using namespace weft::calls;

namespace {

void function(MPI_Comm*, int*, ...) {}

// Litmus: one thread sets and frees handlers while others report errors to them. Each finds one that lives, whose function is that
// of its kind; ThreadSanitizer looks for the rest.
TEST(Errhandler, OneThatIsInUseStaysWhileAnotherIsSet) {
    auto p = std::make_unique<Process>();
    prepare_process(*p);
    p->self.kind = Kind::comm;
    std::atomic<bool> over{false};
    std::atomic<int> wrong{0}, seen{0};
    auto report = [&] {
        while (!over) {
            const HeldErrhandler held = errhandler_of(*p, p->self);
            Errhandler& e = held;
            if (e.kind != Kind::errhandler || e.refs.load() < 1) ++wrong;
            if (e.action == Errhandler::user) {
                ++seen;
                if (e.comm_fn != function) ++wrong;
            }
        }
    };
    std::thread a(report), b(report);
    for (int i = 0; i < 20000 || (seen == 0 && i < 10'000'000); ++i) {
        Errhandler* e = nullptr;
        ASSERT_EQ(comm_create_errhandler(*p, function, &e), Err::ok);
        ASSERT_EQ(comm_set_errhandler(*p, p->self, *e), Err::ok);
        ASSERT_EQ(errhandler_free(*p, &e), Err::ok);
        if (i % 100 == 0) std::this_thread::yield();
    }
    over = true;
    a.join();
    b.join();
    EXPECT_EQ(wrong, 0);
}

}  // namespace
