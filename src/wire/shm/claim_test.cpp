#include "wire/shm/claim.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

using namespace weft;
using wire::shm::Claim;

namespace {

// Every byte arrives, and none outside of what is copied is stored to, wherever both begin in a line.
void touches_nothing_else(void (Claim::*copy)(void*, const void*, size_t) const, bool on, bool wide) {
    Claim t{};
    t.start(on);
    t.wide &= wide;
    constexpr size_t room = 768;
    alignas(64) char from[room], to[room];
    for (size_t s = 64; s < 128; s += 5)
        for (size_t d = 64; d < 128; d += 7)
            for (size_t n : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{130}, size_t{300}, 256 + 128 - d, 512 + 128 - d}) {
                for (size_t i = 0; i < room; ++i) from[i] = static_cast<char>(i * 7 % 255 + 1);   // never 0
                memset(to, 0x55, room);
                const std::vector<char> before(from, from + room);
                (t.*copy)(to + d, from + s, n);
                ASSERT_TRUE(std::equal(to + d, to + d + n, before.begin() + static_cast<long>(s))) << s << ' ' << d << ' ' << n;
                for (size_t i = 0; i < room; ++i) {
                    ASSERT_TRUE(to[i] == 0x55 || (i >= d && i < d + n)) << i;
                    ASSERT_TRUE(from[i] == before[i] || (i >= s && i < s + n)) << i;
                }
                if (!on) {
                    ASSERT_TRUE(std::equal(from, from + room, before.begin()));
                    continue;
                }
                for (size_t line = s / 64; n != 0 && line <= (s + n - 1) / 64; ++line) {
                    const size_t lo = std::max(line * 64, s), hi = std::min(line * 64 + 64, s + n);
                    ASSERT_FALSE(std::equal(from + lo, from + hi, before.begin() + static_cast<long>(lo)))
                        << "line " << line << " was not claimed";
                }
            }
}

TEST(Claim, CopiesTouchNothingElse) {
    for (const bool wide : {false, true}) {
        touches_nothing_else(&Claim::copy, true, wide);
        touches_nothing_else(&Claim::copy_past_caches, true, wide);
        touches_nothing_else(&Claim::copy_past_caches, false, wide);
    }
}

}  // namespace
