#include "api/bindings.hpp"

#include <gtest/gtest.h>

#include <string>

namespace weft::bindings {
namespace {

// A function of the standard's shape that may be called at any time, so that arguments are all that is looked at.
struct Described {
    Arg args[6] = {
        {"buf", ArgKind::buf, Significant::always, -1, 1, 2}, {"count", ArgKind::count, Significant::always, -1, -1, -1},
        {"datatype", ArgKind::type, Significant::always, -1, -1, -1}, {"tag", ArgKind::tag_send, Significant::always, -1, -1, -1},
        {"info", ArgKind::info, Significant::always, -1, -1, -1}, {"flag", ArgKind::flag_out, Significant::always, -1, -1, -1},
    };
    Function f{"MPI_Example", args, 6, Errors::none, -1, true, true};
    int flag = 0;
    char byte = 0;
    intptr_t values[6] = {word(&byte), 1, word(MPI_INT), 0, word(MPI_INFO_NULL), word(&flag)};
    Finding look(int i, intptr_t value) {
        intptr_t v[6];
        for (int k = 0; k < 6; k++) v[k] = values[k];
        v[i] = value;
        return examine(f, v);
    }
};

TEST(Examine, FindsWhichArgumentIsWrong) {
    Described d;
    EXPECT_EQ(examine(d.f, d.values).error, Err::ok);
    EXPECT_EQ(d.look(0, 0).error, Err::buffer);
    EXPECT_EQ(d.look(1, -1).error, Err::count);
    EXPECT_EQ(d.look(2, word(MPI_DATATYPE_NULL)).error, Err::type);
    EXPECT_EQ(d.look(2, 0x5).error, Err::type);
    EXPECT_EQ(d.look(3, -1).error, Err::tag);
    EXPECT_EQ(d.look(4, 0x5).error, Err::info);
    EXPECT_EQ(d.look(5, 0).error, Err::arg);
    EXPECT_EQ(d.look(3, -1).argument, 3);
}

TEST(Examine, SaysWhy) {
    Described d;
    (void)d.look(3, -5);
    EXPECT_NE(std::string(fail_text()).find("tag -5 is negative (argument 4"), std::string::npos) << fail_text();
    clear_fail_text();
    EXPECT_STREQ(fail_text(), "");
}

TEST(Examine, HandlesComeFirst) {
    Described d;
    intptr_t v[6] = {0, -1, word(MPI_DATATYPE_NULL), -1, word(MPI_INFO_NULL), 0};
    EXPECT_EQ(examine(d.f, v).error, Err::type);
}

TEST(Examine, KnowsWhenItMayBeCalled) {
    Described d;
    d.f.any_time = false;
    EXPECT_EQ(examine(d.f, d.values).error, Err::other);
    EXPECT_NE(std::string(fail_text()).find("before MPI_Init"), std::string::npos);
}

TEST(Examine, SkipsWhatInPlaceMakesInsignificant) {
    Described d;
    d.args[1].in_place_of = d.args[2].in_place_of = 0;
    EXPECT_EQ(d.look(1, -1).error, Err::count);
    d.values[0] = word(MPI_IN_PLACE);
    EXPECT_EQ(d.look(1, -1).error, Err::ok);
}

TEST(Checks, AgreeWithTheExamination) {
    Described d;
    const void* const buffers[] = {nullptr, MPI_IN_PLACE, MPI_BUFFER_AUTOMATIC, &d.byte};
    for (int count : {-2, -1, 0, 1, 7})
        for (const void* buf : buffers) {
            bool inlined = count >= 0 && good_buffer(buf, count, obj::type_of(MPI_INT));
            intptr_t v[6] = {word(buf), count, word(MPI_INT), 0, word(MPI_INFO_NULL), word(&d.flag)};
            EXPECT_EQ(inlined, examine(d.f, v).error == Err::ok) << count << " " << buf;
        }
    d.args[3].kind = ArgKind::tag_recv;
    for (int tag : {-7, -3, -2, -1, 0, 5, 2147483647})
        EXPECT_EQ(good_recv_tag(tag), d.look(3, tag).error == Err::ok) << tag;
}

TEST(Checks, RootsAndPeers) {
    obj::Comm c{};
    c.kind = Kind::comm;
    c.size = c.remote_size = 3;
    c.peer_limit = 6;
    EXPECT_TRUE(good_root(c, 0) && good_root(c, 2));
    EXPECT_FALSE(good_root(c, 3) || good_root(c, -1) || good_root(c, MPI_ROOT) || good_root(c, MPI_PROC_NULL));
    EXPECT_TRUE(good_source(c, MPI_ANY_SOURCE) && good_source(c, MPI_PROC_NULL) && good_source(c, 2));
    EXPECT_FALSE(good_source(c, 3) || good_source(c, -2) || good_source(c, -4));
    EXPECT_TRUE(at_root(c, 0) && at_leaf(c, 1) && at_part(c, 1));
    obj::Group remote{};
    c.remote_group = &remote;
    EXPECT_TRUE(good_root(c, MPI_ROOT) && good_root(c, MPI_PROC_NULL) && good_root(c, 1));
    EXPECT_TRUE(at_root(c, MPI_ROOT) && !at_root(c, 0) && !at_leaf(c, MPI_ROOT) && at_leaf(c, 0) && !at_part(c, MPI_PROC_NULL));
}

TEST(Store, TellsWhatDoesNotFit) {
    int i = 7;
    EXPECT_FALSE(store(&i, int64_t{1} << 31));
    EXPECT_EQ(i, 7);
    store_or_undefined(&i, int64_t{1} << 31);
    EXPECT_EQ(i, MPI_UNDEFINED);
    EXPECT_TRUE(store(&i, -5));
    EXPECT_EQ(i, -5);
    int64_t wide = 0;
    store_or_undefined(&wide, int64_t{1} << 40);
    EXPECT_EQ(wide, int64_t{1} << 40);
}

TEST(Raise, WithoutAHandlerReturnsTheCode) {
    Described d;
    EXPECT_EQ(raise(d.f, nullptr, fail(Err::tag, "why")), MPI_ERR_TAG);
}

}  // namespace
}  // namespace weft::bindings
