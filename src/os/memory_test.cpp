#include "os/memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace weft::os {
namespace {

TEST(Memory, WhatCanBeReadIsTold) {
    static const uint64_t constant = 1;
    uint64_t local = 2;
    EXPECT_TRUE(is_readable(reinterpret_cast<uint64_t>(&constant)));
    EXPECT_TRUE(is_readable(reinterpret_cast<uint64_t>(&local)));
    void* page = map_private(page_bytes);
    ASSERT_NE(page, nullptr);
    const auto address = reinterpret_cast<uint64_t>(page);
    EXPECT_TRUE(is_readable(address) && is_readable(address + page_bytes - 8));
    ASSERT_EQ(mprotect(page, page_bytes, PROT_NONE), 0);
    EXPECT_TRUE(is_mapped(address));
    EXPECT_FALSE(is_readable(address));   // mapped is not enough
    unmap(page, page_bytes);
    EXPECT_FALSE(is_mapped(address) || is_readable(address));
    for (uint64_t nowhere : {0ull, 0x1000ull, 0xdeadbeefdeadbee0ull, ~7ull}) EXPECT_FALSE(is_readable(nowhere)) << nowhere;
}

}  // namespace
}  // namespace weft::os
