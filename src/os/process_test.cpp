#include "os/process.hpp"

#include <gtest/gtest.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "os/env.hpp"
#include "os/message.hpp"
#include "os/socket.hpp"
#include "os/spin.hpp"

using namespace weft::os;

TEST(Process, MessagesCarryDescriptors) {
    int pair[2], pipe_ends[2];
    ASSERT_TRUE(socket_pair(pair));
    ASSERT_EQ(pipe(pipe_ends), 0);
    ASSERT_TRUE(send_message(pair[0], "hello", 5, &pipe_ends[1], 1));
    close_fd(&pipe_ends[1]);
    EXPECT_EQ(pipe_ends[1], -1);
    char text[16] = {};
    int fds[2] = {7, 7};
    ASSERT_EQ(receive_message(pair[1], text, sizeof text, fds, 2), 5);
    EXPECT_STREQ(text, "hello");
    ASSERT_GE(fds[0], 0);
    EXPECT_EQ(fds[1], -1);
    ASSERT_EQ(write(fds[0], "x", 1), 1);
    EXPECT_EQ(read_some(pipe_ends[0], text, 1), 1);
    close_fd(&fds[0]);
    EXPECT_EQ(read_some(pipe_ends[0], text, 1), 0) << "somebody else holds the write end";
    close_fd(&pair[0]);
    EXPECT_EQ(receive_message(pair[1], text, sizeof text, fds, 2), 0);
    close_fd(&pair[1]);
    close_fd(&pipe_ends[0]);
}

// One side sends and closes at once, while the other looks again and again: the message comes before the end of file. Linux alone would
// lose one in a thousand.
template <class Receive>
int lost_last_messages(int rounds, Receive&& receive) {
    int lost = 0;
    for (int i = 0; i < rounds; ++i) {
        int pair[2];
        EXPECT_TRUE(socket_pair(pair));
        std::thread last([&] {
            for (int k = i % 500; k > 0; --k) pause_cpu();   // at another moment each time
            EXPECT_TRUE(send_message(pair[0], "x", 1, nullptr, 0));
            close_fd(&pair[0]);
        });
        lost += !receive(pair[1]);
        last.join();
        close_fd(&pair[1]);
    }
    return lost;
}

TEST(Process, TheLastMessageComesBeforeTheEnd) {
    constexpr int rounds = 1500;   // each may take a slice of the CPU where it is shared
    char c;
    EXPECT_EQ(lost_last_messages(rounds, [&](int s) {
        int64_t n;
        while ((n = receive_now(s, &c, 1)) == 0) {}
        return n == 1;
    }), 0) << "messages were lost that wait for nothing";
    EXPECT_EQ(lost_last_messages(rounds, [&](int s) {
        int64_t n;
        while ((n = receive_message(s, &c, 1, nullptr, 0, false)) < 0) {}
        return n == 1;
    }), 0) << "messages were lost that could carry descriptors";
    EXPECT_EQ(lost_last_messages(rounds / 5, [&](int s) { return receive_message(s, &c, 1, nullptr, 0) == 1; }), 0) << "of those that wait";
}

TEST(Process, UnwantedDescriptorsAreClosed) {
    int pair[2], pipe_ends[2];
    ASSERT_TRUE(socket_pair(pair));
    ASSERT_EQ(pipe(pipe_ends), 0);
    ASSERT_TRUE(send_message(pair[0], "x", 1, &pipe_ends[1], 1));
    close_fd(&pipe_ends[1]);
    char c;
    ASSERT_EQ(receive_message(pair[1], &c, 1, nullptr, 0), 1);
    EXPECT_EQ(read_some(pipe_ends[0], &c, 1), 0) << "the write end that nobody asked for is still open";
    close_fd(&pair[0]);
    close_fd(&pair[1]);
    close_fd(&pipe_ends[0]);
}

TEST(Process, AbstractSockets) {
    char name[64];
    snprintf(name, sizeof name, "weft-test-%d", getpid());
    EXPECT_LT(connect_abstract(name), 0);
    int listener = listen_abstract(name);
    ASSERT_GE(listener, 0);
    EXPECT_LT(listen_abstract(name), 0) << "the name is taken";
    int a = connect_abstract(name);
    ASSERT_GE(a, 0);
    int b = accept_one(listener);
    ASSERT_GE(b, 0);
    EXPECT_TRUE(peer_is_same_user(a));
    EXPECT_TRUE(peer_is_same_user(b));
    EXPECT_NE(socket_inode(a), socket_inode(b));
    for (int* fd : {&a, &b, &listener}) close_fd(fd);
    char long_name[200];
    memset(long_name, 'x', sizeof long_name);
    long_name[199] = 0;
    EXPECT_LT(listen_abstract(long_name), 0);
    EXPECT_EQ(errno, ENAMETOOLONG);
}

TEST(Process, SocketInodeIsZeroForOthers) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    EXPECT_EQ(socket_inode(ends[0]), 0u);
    close_fd(&ends[0]);
    EXPECT_EQ(socket_inode(ends[1] + 1000), 0u);
    close_fd(&ends[1]);
}

// The child waits for ever; closing the write end, before or after it asks, kills it.
static int status_of_child_on_lifeline(bool closed_before) {
    int lifeline[2], ready[2];
    if (pipe(lifeline) != 0 || pipe(ready) != 0) return -1;
    pid_t child = fork();
    if (child == 0) {
        close(lifeline[1]);
        if (closed_before) {
            char c;
            if (read(lifeline[0], &c, 1) != 0) _exit(2);  // waits until the other end is closed
        }
        if (!die_with(lifeline[0])) _exit(3);
        if (write(ready[1], "r", 1) != 1) _exit(4);
        for (;;) pause();
    }
    close_fd(&ready[1]);
    char c;
    if (closed_before) close_fd(&lifeline[1]);
    else if (read_some(ready[0], &c, 1) == 1) close_fd(&lifeline[1]);
    int status = 0;
    waitpid(child, &status, 0);
    for (int* fd : {&lifeline[0], &lifeline[1], &ready[0]}) close_fd(fd);
    return status;
}

TEST(Process, DiesWithTheLifeline) {
    for (bool before : {false, true}) {
        int status = status_of_child_on_lifeline(before);
        EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "closed before: " << before << ", status " << status;
    }
}

TEST(Process, Cpus) {
    uint64_t mask[cpu_words];
    cpu_mask(mask);
    int n = 0;
    for (uint64_t word : mask) n += __builtin_popcountll(word);
    EXPECT_EQ(n, cpus_allowed());
    char a[96], b[96];
    node_identity(a, sizeof a);
    node_identity(b, sizeof b);
    EXPECT_STREQ(a, b);
    EXPECT_GT(strlen(a), 10u);
}

TEST(Env, Numbers) {
    int64_t v = -7;
    for (const char* bad : {"", " ", "x", "1x", "1 ", "11", "-1", "99999999999999999999", "0x3"})
        EXPECT_FALSE(parse_int(bad, 0, 10, &v)) << bad;
    EXPECT_FALSE(parse_int(nullptr, 0, 10, &v));
    EXPECT_EQ(v, -7) << "written on failure";
    EXPECT_TRUE(parse_int("10", 0, 10, &v));
    EXPECT_EQ(v, 10);
    setenv("WEFT_ENV_TEST", "", 1);
    EXPECT_EQ(env("WEFT_ENV_TEST"), nullptr);
    EXPECT_EQ(env_int("WEFT_ENV_TEST", 4), 4);
    setenv("WEFT_ENV_TEST", "-12", 1);
    EXPECT_EQ(env_int("WEFT_ENV_TEST", 4), -12);
    unsetenv("WEFT_ENV_TEST");
}

TEST(Env, ForeignRightsHideEveryVariable) {
    setenv("WEFT_ENV_TEST", "5", 1);
    EXPECT_STREQ(env_under(false, "WEFT_ENV_TEST"), "5");
    EXPECT_EQ(env_under(true, "WEFT_ENV_TEST"), nullptr);
    EXPECT_EQ(env_under(true, "PATH"), nullptr);
    EXPECT_FALSE(has_foreign_rights()) << "this test is no setuid program";
    unsetenv("WEFT_ENV_TEST");
}

TEST(Process, WaitingForSomethingToRead) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    EXPECT_FALSE(wait_readable(ends[0], 0));
    EXPECT_FALSE(wait_readable(ends[0], 20));
    ASSERT_EQ(write(ends[1], "x", 1), 1);
    EXPECT_TRUE(wait_readable(ends[0], 0));
    EXPECT_TRUE(wait_readable(ends[0], -1));
    char c;
    ASSERT_EQ(read_some(ends[0], &c, 1), 1);
    close_fd(&ends[1]);
    EXPECT_TRUE(wait_readable(ends[0], -1)) << "the end is something to read";
    close_fd(&ends[0]);
}
