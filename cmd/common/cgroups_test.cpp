// Control groups in trees made for it: version 1, version 2, both, and containers that see a part of them.
#include "common/cgroups.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace {

class Cgroups : public testing::Test {
protected:
    void SetUp() override {
        char name[] = "/tmp/weft-cgroups-XXXXXX";
        ASSERT_NE(mkdtemp(name), nullptr);
        root = name;
    }
    void TearDown() override { std::filesystem::remove_all(root); }
    void write(const std::string& path, const std::string& text) {
        std::filesystem::create_directories(std::filesystem::path(root + path).parent_path());
        std::ofstream(root + path) << text << "\n";
    }
    std::string root;
};

constexpr char v2_mount[] = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";

TEST_F(Cgroups, NothingIsKnown) {
    EXPECT_EQ(cgroups::cpu_quota(root).cpus, INFINITY);
    EXPECT_EQ(cgroups::memory_limit(root).bytes, UINT64_MAX);
    EXPECT_EQ(cgroups::cpuset(root), "");
}

TEST_F(Cgroups, Version2TakesTheLeastOfAllAbove) {
    write("/proc/self/mountinfo", std::string("21 20 0:5 / /proc rw - proc proc rw\n") + v2_mount);
    write("/proc/self/cgroup", "0::/user.slice/user-1.slice/job");
    write("/sys/fs/cgroup/user.slice/user-1.slice/job/cpu.max", "max 100000");
    write("/sys/fs/cgroup/user.slice/user-1.slice/cpu.max", "150000 100000");
    write("/sys/fs/cgroup/user.slice/cpu.max", "400000 100000");
    write("/sys/fs/cgroup/user.slice/user-1.slice/job/memory.max", "8589934592");
    write("/sys/fs/cgroup/user.slice/user-1.slice/memory.max", "max");
    write("/sys/fs/cgroup/user.slice/memory.max", "1073741824");
    write("/sys/fs/cgroup/user.slice/cpuset.cpus.effective", "0-3,8");
    EXPECT_EQ(cgroups::cpu_quota(root).cpus, 1.5);
    EXPECT_EQ(cgroups::cpu_quota(root).group, root + "/sys/fs/cgroup/user.slice/user-1.slice");
    EXPECT_EQ(cgroups::memory_limit(root).bytes, 1u << 30);
    EXPECT_EQ(cgroups::memory_limit(root).group, root + "/sys/fs/cgroup/user.slice");
    EXPECT_EQ(cgroups::cpuset(root), "0-3,8");
}

TEST_F(Cgroups, Version2InAContainerOfItsOwnNamespace) {
    write("/proc/self/mountinfo", v2_mount);
    write("/proc/self/cgroup", "0::/");
    write("/sys/fs/cgroup/cpu.max", "50000 100000");
    write("/sys/fs/cgroup/memory.max", "67108864");
    EXPECT_EQ(cgroups::cpu_quota(root).cpus, 0.5);
    EXPECT_EQ(cgroups::memory_limit(root).bytes, 64u << 20);
}

TEST_F(Cgroups, APathThatCannotBeSeenMeansTheTop) {
    write("/proc/self/mountinfo", v2_mount);
    write("/proc/self/cgroup", "0::/../other");
    write("/sys/fs/cgroup/cpu.max", "200000 100000");
    EXPECT_EQ(cgroups::cpu_quota(root).cpus, 2);
}

TEST_F(Cgroups, Version1InAContainerThatSeesItsOwnPart) {
    write("/proc/self/mountinfo",
          "35 31 0:30 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro,nosuid - cgroup cgroup rw,cpu,cpuacct\n"
          "36 31 0:31 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
          "37 31 0:32 / /sys/fs/cgroup/cpuset ro - cgroup cgroup rw,cpuset\n"
          "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw");
    write("/proc/self/cgroup", "4:memory:/docker/abc\n3:cpuset:/batch/job\n2:cpu,cpuacct:/docker/abc/inner\n0::/docker/abc");
    write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "300000");
    write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
    write("/sys/fs/cgroup/cpu,cpuacct/inner/cpu.cfs_quota_us", "-1");
    write("/sys/fs/cgroup/cpu,cpuacct/inner/cpu.cfs_period_us", "100000");
    write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912");
    write("/sys/fs/cgroup/cpuset/batch/job/cpuset.cpus", "2-3");
    write("/sys/fs/cgroup/cpuset/batch/cpuset.cpus", "0-7");
    EXPECT_EQ(cgroups::cpu_quota(root).cpus, 3);
    EXPECT_EQ(cgroups::memory_limit(root).bytes, 512u << 20);
    EXPECT_EQ(cgroups::cpuset(root), "2-3");
}

TEST_F(Cgroups, ANameThatOnlyBeginsLikeTheMountsIsAnotherGroup) {
    write("/proc/self/mountinfo", "35 31 0:30 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu");
    write("/proc/self/cgroup", "2:cpu:/docker/abcdef");
    write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000");
    write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
    EXPECT_EQ(cgroups::cpu_quota(root).cpus, 1);
}

}  // namespace
