#include "calls/infos.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include <mpi.h>

#include "calls/ids.hpp"
#include "obj/process.hpp"

namespace weft::calls {
namespace {

using namespace obj;

struct InfoTest : testing::Test {
    Process& p = *process;
    Info* i = nullptr;
    void SetUp() override { ASSERT_EQ(info_create(p, &i), Err::ok); }
    void TearDown() override {
        if (i != nullptr) { EXPECT_EQ(info_free(p, &i), Err::ok); }
    }
};

TEST_F(InfoTest, KeepsTheOrderOfFirstSetting) {
    for (const char* key : {"b", "a", "c"}) ASSERT_EQ(info_set(p, *i, key, "x"), Err::ok);
    ASSERT_EQ(info_set(p, *i, "a", "again"), Err::ok);
    int n = 0;
    ASSERT_EQ(info_get_nkeys(p, *i, &n), Err::ok);
    EXPECT_EQ(n, 3);
    std::string keys;
    char key[MPI_MAX_INFO_KEY];
    for (int k = 0; k < n; k++) {
        ASSERT_EQ(info_get_nthkey(p, *i, k, key), Err::ok);
        keys += key;
    }
    EXPECT_EQ(keys, "bac");
    EXPECT_EQ(info_get_nthkey(p, *i, 3, key), Err::arg);
    ASSERT_EQ(info_delete(p, *i, "a"), Err::ok);
    EXPECT_EQ(info_delete(p, *i, "a"), Err::info_nokey);
}

TEST_F(InfoTest, GetStringTellsTheSizeAndTruncates) {
    ASSERT_EQ(info_set(p, *i, "key", "value"), Err::ok);
    char text[8] = "???????";
    int len = 0;
    bool flag = false;
    ASSERT_EQ(info_get_string(p, *i, "key", &len, nullptr, &flag), Err::ok);
    EXPECT_TRUE(flag);
    EXPECT_EQ(len, 6);
    len = 4;
    ASSERT_EQ(info_get_string(p, *i, "key", &len, text, &flag), Err::ok);
    EXPECT_STREQ(text, "val");
    EXPECT_EQ(text[4], '?');
    EXPECT_EQ(len, 6);
    len = 7;
    ASSERT_EQ(info_get_string(p, *i, "other", &len, text, &flag), Err::ok);
    EXPECT_FALSE(flag);
    EXPECT_EQ(len, 7);
    EXPECT_STREQ(text, "val");
}

TEST_F(InfoTest, DeprecatedGettersHaveRoomForTheNulBesides) {
    ASSERT_EQ(info_set(p, *i, "key", "value"), Err::ok);
    int len = 0;
    bool flag = false;
    ASSERT_EQ(info_get_valuelen(p, *i, "key", &len, &flag), Err::ok);
    EXPECT_EQ(len, 5);
    char text[6];
    ASSERT_EQ(info_get(p, *i, "key", len, text, &flag), Err::ok);
    EXPECT_TRUE(flag);
    EXPECT_STREQ(text, "value");
}

TEST_F(InfoTest, RefusesKeysAndValuesThatAreTooLong) {
    EXPECT_EQ(info_set(p, *i, "", "x"), Err::info_key);
    EXPECT_EQ(info_set(p, *i, std::string(MPI_MAX_INFO_KEY, 'k').c_str(), "x"), Err::info_key);
    EXPECT_EQ(info_set(p, *i, std::string(MPI_MAX_INFO_KEY - 1, 'k').c_str(), "x"), Err::ok);
    EXPECT_EQ(info_set(p, *i, "k", std::string(MPI_MAX_INFO_VAL, 'v').c_str()), Err::info_value);
    EXPECT_EQ(info_set(p, *i, "k", ""), Err::ok);
}

TEST_F(InfoTest, ADuplicateIsAnotherObject) {
    ASSERT_EQ(info_set(p, *i, "k", "1"), Err::ok);
    Info* copy = nullptr;
    ASSERT_EQ(info_dup(p, *i, &copy), Err::ok);
    ASSERT_EQ(info_set(p, *i, "k", "2"), Err::ok);
    char text[8];
    EXPECT_TRUE(info_lookup(copy, "k", text, sizeof text));
    EXPECT_STREQ(text, "1");
    EXPECT_EQ(info_free(p, &copy), Err::ok);
    EXPECT_EQ(copy, nullptr);
}

TEST_F(InfoTest, EnvironmentHasTheCommandAndCannotBeFreed) {
    char a0[] = "program", a1[] = "-x", a2[] = "y";
    char* argv[] = {a0, a1, a2, nullptr};
    Info* e = nullptr;
    ASSERT_EQ(info_create_env(p, 3, argv, &e), Err::ok);
    char text[32];
    EXPECT_TRUE(info_lookup(e, "command", text, sizeof text));
    EXPECT_STREQ(text, "program");
    EXPECT_TRUE(info_lookup(e, "argv", text, sizeof text));
    EXPECT_STREQ(text, "-x y");
    EXPECT_EQ(info_free(p, &e), Err::ok);
    Info* env = info_env(p);
    ASSERT_NE(env, nullptr);
    EXPECT_EQ(info_free(p, &env), Err::info);
    EXPECT_EQ(handle_of(info_env(p)), MPI_INFO_ENV);
}

TEST_F(InfoTest, AFreedInfoIsDeadAndItsIdIsNobodys) {
    int id = to_int(p, handle_of(i));
    EXPECT_GE(id, 0x1000);
    EXPECT_EQ(to_int(p, handle_of(i)), id);
    EXPECT_EQ(info_fromint(p, id), handle_of(i));
    EXPECT_EQ(comm_fromint(p, id), MPI_COMM_NULL);
    Info* old = i;
    ASSERT_EQ(info_free(p, &i), Err::ok);
    EXPECT_EQ(old->kind, Kind::dead);
    EXPECT_EQ(info_fromint(p, id), MPI_INFO_NULL);
    ASSERT_EQ(info_create(p, &i), Err::ok);   // the same memory, another object
    EXPECT_EQ(info_fromint(p, id), MPI_INFO_NULL);
}

TEST(Ids, PredefinedHandlesAreTheirOwn) {
    Process& p = *process;
    EXPECT_EQ(to_int(p, MPI_COMM_WORLD), 0x101);
    EXPECT_EQ(comm_fromint(p, 0x101), MPI_COMM_WORLD);
    EXPECT_EQ(type_fromint(p, to_int(p, MPI_INT)), MPI_INT);
    EXPECT_EQ(info_fromint(p, 1 << 30), MPI_INFO_NULL);
    EXPECT_EQ(info_fromint(p, -1), MPI_INFO_NULL);
}

TEST(Ids, ManyLiveObjectsKeepTheirs) {
    Process& p = *process;
    constexpr int n = 500;
    Info* infos[n];
    int ids[n];
    for (int k = 0; k < n; k++) {
        ASSERT_EQ(info_create(p, &infos[k]), Err::ok);
        ids[k] = to_int(p, handle_of(infos[k]));
        if (k % 3 == 0) { ASSERT_EQ(info_free(p, &infos[k]), Err::ok); }
    }
    for (int k = 0; k < n; k++) {
        if (infos[k] == nullptr) continue;
        EXPECT_EQ(info_fromint(p, ids[k]), handle_of(infos[k]));
        ASSERT_EQ(info_free(p, &infos[k]), Err::ok);
    }
}

}  // namespace
}  // namespace weft::calls
