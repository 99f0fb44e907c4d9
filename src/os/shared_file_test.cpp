#include "os/shared_file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace weft::os;

TEST(SharedFile, IsEmptyAndWithoutAName) {
    SharedFile f = make_shared_file("weft-test");
    ASSERT_GE(f.fd, 0);
    struct stat s;
    ASSERT_EQ(fstat(f.fd, &s), 0);
    EXPECT_EQ(s.st_size, 0);
    EXPECT_EQ(s.st_nlink, 0u);
    EXPECT_TRUE(fcntl(f.fd, F_GETFD) & FD_CLOEXEC);
    close(f.fd);
}

TEST(SharedFile, WhatIsAllocatedIsThere) {
    SharedFile f = make_shared_file("weft-test");
    ASSERT_GE(f.fd, 0);
    constexpr size_t bytes = (5 << 20) + 4096;  // not a whole number of extents
    ASSERT_TRUE(allocate(f.fd, bytes));
    ASSERT_TRUE(allocate(f.fd, bytes)) << "by every rank";
    struct stat s;
    ASSERT_EQ(fstat(f.fd, &s), 0);
    EXPECT_EQ(size_t(s.st_size), bytes);
    EXPECT_GE(size_t(s.st_blocks) * 512, bytes);
    EXPECT_GE(room(f.fd), 0u);
    close(f.fd);
    EXPECT_FALSE(allocate(f.fd, bytes)) << "of a closed descriptor";
}

TEST(SharedFile, FailuresAreBothTold) {
    SharedFile f;
    f.memfd_error = EPERM;
    f.file_error = EROFS;
    char text[200];
    describe_failure(f, text, sizeof text);
    EXPECT_STREQ(text, "memfd_create: Operation not permitted; a file in /dev/shm: Read-only file system");
}
