// The transposition by ranks that are threads of one process, in all forms: under ThreadSanitizer this shows that no rank reads
// what another still writes, in the fused loops as well. Only in the build where ranks can be threads (WEFT_THREADS_PRESET).
#include "p2p/ranks_test.hpp"

extern "C" {
#include "fft2d/fft2d.h"
}

// Each thread maps the segment of the messages at an address of its own, so ThreadSanitizer does not see the order that messages
// make. All that the forms do is ordered by counters; only the first lines of the memory are cleared and probed before there are any.
extern "C" const char* __tsan_default_suppressions() { return "race:by_alloc_mem\n"; }

namespace weft::test {
namespace {

void transform_in_all_forms(int ranks, int n, int ranks_per_node) {
    run_ranks(ranks, obj::ThreadLevel::single, [&](Process&) {
        static constexpr int twice = 2;
        Fft2d f;
        uint64_t first = 0;
        fft2d_open(&f, MPI_COMM_WORLD, n, ranks_per_node);
        ASSERT_TRUE(f.arena.shared);
        for (int round = 0; round < twice; round++)
            for (int form = 0; form < form_count; form++) {
                fft2d_fill(&f);
                fft2d_forward(&f, static_cast<Form>(form));
                fft2d_check_once(&f, form_names[form]);
                const uint64_t digest = fft2d_digest(&f);
                EXPECT_TRUE(first == 0 || digest == first) << form_names[form];
                first = digest;
                for (int i = 0; i < 7; i++) fft2d_forward(&f, static_cast<Form>(form));   // one after the other, without a barrier
                fft2d_check_returned(&f, form_names[form], 8);
            }
        fft2d_close(&f);
    });
}

TEST(Fft2d, TwoRanks) { transform_in_all_forms(2, 32, 0); }
TEST(Fft2d, FourRanks) { transform_in_all_forms(4, 32, 0); }
TEST(Fft2d, FourRanksOnTwoNodes) { transform_in_all_forms(4, 32, 2); }

}  // namespace
}  // namespace weft::test
