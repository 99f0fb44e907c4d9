#include "calls/attributes.hpp"

#include <gtest/gtest.h>

#include <string>

#include "calls/errhandlers.hpp"
#include "calls/errors.hpp"
#include "calls/types.hpp"
#include "obj/attr.hpp"
#include "obj/handles.hpp"
#include "obj/registry.hpp"

namespace weft::calls {
namespace {

using namespace obj;

std::string journal;
int refusals;

int note_copy(MPI_Comm, int, void* extra, void* in, void* out, int* flag) {
    journal += "copy" + std::to_string(reinterpret_cast<intptr_t>(in)) + " ";
    *static_cast<void**>(out) = static_cast<char*>(in) + reinterpret_cast<intptr_t>(extra);
    *flag = reinterpret_cast<intptr_t>(in) != 13;
    return MPI_SUCCESS;
}

int note_delete(MPI_Comm, int, void* value, void*) {
    journal += "delete" + std::to_string(reinterpret_cast<intptr_t>(value)) + " ";
    return refusals > 0 && refusals-- ? MPI_ERR_OTHER : MPI_SUCCESS;
}

void* word(intptr_t v) { return reinterpret_cast<void*>(v); }

struct AttrTest : testing::Test {
    Process& p = *process;
    Comm a{}, b{};
    int key = MPI_KEYVAL_INVALID;
    void SetUp() override {
        a.kind = b.kind = Kind::comm;
        journal.clear();
        refusals = 0;
        ASSERT_EQ(comm_create_keyval(p, note_copy, note_delete, &key, word(100)), Err::ok);
    }
    intptr_t get(Comm& c, int k) {
        void* v = nullptr;
        bool flag = false;
        EXPECT_EQ(comm_get_attr(p, c, k, &v, &flag), Err::ok);
        return flag ? reinterpret_cast<intptr_t>(v) : -1;
    }
};

TEST_F(AttrTest, FreedKeyvalsLeaveTheirPlace) {
    const int32_t before = registry(p).n_keyvals;
    for (int i = 0; i < 1000; ++i) {
        int k = MPI_KEYVAL_INVALID;
        ASSERT_EQ(comm_create_keyval(p, note_copy, note_delete, &k, nullptr), Err::ok);
        ASSERT_EQ(comm_free_keyval(p, &k), Err::ok);
    }
    EXPECT_LE(registry(p).n_keyvals, before + 32);
}

TEST_F(AttrTest, ReplacingDeletesTheOldValue) {
    EXPECT_EQ(get(a, key), -1);
    ASSERT_EQ(comm_set_attr(p, a, key, word(1)), Err::ok);
    ASSERT_EQ(comm_set_attr(p, a, key, word(2)), Err::ok);
    EXPECT_EQ(get(a, key), 2);
    ASSERT_EQ(comm_delete_attr(p, a, key), Err::ok);
    EXPECT_EQ(get(a, key), -1);
    EXPECT_EQ(journal, "delete1 delete2 ");
    EXPECT_EQ(comm_delete_attr(p, a, key), Err::keyval);
}

TEST_F(AttrTest, CopiesWhatTheCallbackWants) {
    int second = 0, third = 0;
    ASSERT_EQ(comm_create_keyval(p, MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &second, nullptr), Err::ok);
    ASSERT_EQ(comm_create_keyval(p, MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &third, nullptr), Err::ok);
    ASSERT_EQ(comm_set_attr(p, a, key, word(5)), Err::ok);
    ASSERT_EQ(comm_set_attr(p, a, second, word(6)), Err::ok);
    ASSERT_EQ(comm_set_attr(p, a, third, word(7)), Err::ok);
    ASSERT_EQ(copy_attributes(p, a, b), Err::ok);
    EXPECT_EQ(get(b, key), 105);
    EXPECT_EQ(get(b, second), 6);
    EXPECT_EQ(get(b, third), -1);
    EXPECT_EQ(delete_attributes(p, b), Err::ok);
    EXPECT_EQ(delete_attributes(p, a), Err::ok);
    EXPECT_EQ(journal, "copy5 delete105 delete5 ");
}

TEST_F(AttrTest, AFlagOfZeroCopiesNothing) {
    ASSERT_EQ(comm_set_attr(p, a, key, word(13)), Err::ok);
    ASSERT_EQ(copy_attributes(p, a, b), Err::ok);
    EXPECT_EQ(get(b, key), -1);
    EXPECT_EQ(delete_attributes(p, a), Err::ok);
}

TEST_F(AttrTest, TheLatestIsDeletedFirstAndARefusalStops) {
    int second = 0;
    ASSERT_EQ(comm_create_keyval(p, note_copy, note_delete, &second, nullptr), Err::ok);
    ASSERT_EQ(comm_set_attr(p, a, key, word(1)), Err::ok);
    ASSERT_EQ(comm_set_attr(p, a, second, word(2)), Err::ok);
    refusals = 1;
    EXPECT_EQ(delete_attributes(p, a), Err::other);
    EXPECT_EQ(get(a, second), 2);
    EXPECT_EQ(delete_attributes(p, a), Err::ok);
    EXPECT_EQ(journal, "delete2 delete2 delete1 ");
}

TEST_F(AttrTest, AFreedKeyvalServesTheAttributesItHas) {
    ASSERT_EQ(comm_set_attr(p, a, key, word(1)), Err::ok);
    int number = key;
    ASSERT_EQ(comm_free_keyval(p, &key), Err::ok);
    EXPECT_EQ(key, MPI_KEYVAL_INVALID);
    EXPECT_EQ(comm_set_attr(p, b, number, word(2)), Err::keyval);
    EXPECT_EQ(get(a, number), 1);
    EXPECT_EQ(delete_attributes(p, a), Err::ok);
    EXPECT_EQ(journal, "delete1 ");
    EXPECT_EQ(comm_free_keyval(p, &number), Err::keyval);
}

TEST_F(AttrTest, KeyvalsAreOfOneKindOfObject) {
    int of_type = 0;
    ASSERT_EQ(type_create_keyval(p, MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, &of_type, nullptr), Err::ok);
    EXPECT_EQ(comm_set_attr(p, a, of_type, word(1)), Err::keyval);
    EXPECT_EQ(comm_free_keyval(p, &of_type), Err::keyval);
    type::Type& t = *type_of(p, MPI_INT);
    ASSERT_EQ(type_set_attr(p, t, of_type, word(3)), Err::ok);
    void* v = nullptr;
    bool flag = false;
    ASSERT_EQ(type_get_attr(p, t, of_type, &v, &flag), Err::ok);
    EXPECT_TRUE(flag);
    EXPECT_EQ(v, word(3));
    EXPECT_EQ(type_delete_attr(p, t, of_type), Err::ok);
    EXPECT_EQ(type_free_keyval(p, &of_type), Err::ok);
}

TEST_F(AttrTest, PredefinedOnesAreThereAndFixed) {
    int* value = nullptr;
    bool flag = false;
    ASSERT_EQ(comm_get_attr(p, a, MPI_TAG_UB, &value, &flag), Err::ok);
    ASSERT_TRUE(flag);
    EXPECT_EQ(*value, 2147483647);
    ASSERT_EQ(comm_get_attr(p, a, MPI_LASTUSEDCODE, &value, &flag), Err::ok);
    ASSERT_TRUE(flag);
    int before = *value, fresh = 0;
    ASSERT_EQ(add_error_class(p, &fresh), Err::ok);
    EXPECT_EQ(*value, fresh);
    EXPECT_EQ(fresh, before + 1);
    EXPECT_EQ(remove_error_class(p, fresh), Err::ok);
    EXPECT_EQ(comm_set_attr(p, a, MPI_TAG_UB, word(1)), Err::keyval);
    EXPECT_EQ(comm_delete_attr(p, a, MPI_TAG_UB), Err::keyval);
}

TEST(TypeName, IsItsOwnUntilSet) {
    Process& p = *process;
    type::Type& t = *type_of(p, MPI_DOUBLE);
    char name[MPI_MAX_OBJECT_NAME];
    int length = 0;
    ASSERT_EQ(type_get_name(p, t, name, &length), Err::ok);
    EXPECT_STREQ(name, "MPI_DOUBLE");
    EXPECT_EQ(length, 10);
    ASSERT_EQ(type_set_name(p, t, std::string(300, 'n').c_str()), Err::ok);
    ASSERT_EQ(type_get_name(p, t, name, &length), Err::ok);
    EXPECT_EQ(length, MPI_MAX_OBJECT_NAME - 1);
    ASSERT_EQ(type_set_name(p, t, "MPI_DOUBLE"), Err::ok);
}

TEST(Errors, UserClassesCodesAndTexts) {
    Process& p = *process;
    int cls = 0, code = 0, got = 0, length = -1;
    char text[MPI_MAX_ERROR_STRING];
    ASSERT_EQ(add_error_class(p, &cls), Err::ok);
    ASSERT_EQ(add_error_code(p, cls, &code), Err::ok);
    EXPECT_GT(cls, MPI_ERR_LASTCODE);
    ASSERT_EQ(error_class(p, code, &got), Err::ok);
    EXPECT_EQ(got, cls);
    ASSERT_EQ(error_string(p, code, text, &length), Err::ok);
    EXPECT_EQ(length, 0);
    ASSERT_EQ(add_error_string(p, code, "of mine"), Err::ok);
    ASSERT_EQ(error_string(p, code, text, &length), Err::ok);
    EXPECT_STREQ(text, "of mine");
    EXPECT_EQ(remove_error_class(p, cls), Err::arg);    // has a code
    EXPECT_EQ(remove_error_code(p, code), Err::arg);    // has a text
    ASSERT_EQ(remove_error_string(p, code), Err::ok);
    EXPECT_EQ(remove_error_string(p, code), Err::arg);
    EXPECT_EQ(remove_error_class(p, code), Err::arg);   // is no class
    ASSERT_EQ(remove_error_code(p, code), Err::ok);
    ASSERT_EQ(remove_error_class(p, cls), Err::ok);
    EXPECT_EQ(error_class(p, cls, &got), Err::arg);
    EXPECT_EQ(add_error_string(p, MPI_ERR_TAG, "x"), Err::arg);
    EXPECT_EQ(remove_error_class(p, MPI_ERR_TAG), Err::arg);
}

TEST(Errors, EveryClassHasAText) {
    Process& p = *process;
    char text[MPI_MAX_ERROR_STRING];
    int got = -1, length = 0;
    for (int code = 0; code <= MPI_ERR_ABI; code++) {
        ASSERT_EQ(error_string(p, code, text, &length), Err::ok) << code;
        EXPECT_EQ(length, static_cast<int>(strlen(text)));
        EXPECT_EQ(std::string(text).rfind("MPI_", 0), 0u) << text;
        ASSERT_EQ(error_class(p, code, &got), Err::ok);
        EXPECT_EQ(got, code);
    }
    EXPECT_EQ(error_string(p, 500, text, &length), Err::arg);
}

void never(MPI_Comm*, int*, ...) {}

TEST(Errhandlers, AreCountedAndTyped) {
    Process& p = *process;
    Comm c{};
    c.kind = Kind::comm;
    Errhandler *e = nullptr, *got = nullptr, *of_win = nullptr;
    ASSERT_EQ(comm_create_errhandler(p, never, &e), Err::ok);
    ASSERT_EQ(comm_set_errhandler(p, c, *e), Err::ok);
    Errhandler* mine = e;
    ASSERT_EQ(errhandler_free(p, &e), Err::ok);
    EXPECT_EQ(e, nullptr);
    EXPECT_EQ(mine->kind, Kind::errhandler);   // the communicator holds it
    ASSERT_EQ(comm_get_errhandler(p, c, &got), Err::ok);
    EXPECT_EQ(got, mine);
    ASSERT_EQ(errhandler_free(p, &got), Err::ok);
    ASSERT_EQ(comm_set_errhandler(p, c, errors_return), Err::ok);
    EXPECT_EQ(mine->kind, Kind::dead);
    ASSERT_EQ(win_create_errhandler(p, reinterpret_cast<MPI_Win_errhandler_function*>(never), &of_win), Err::ok);
    EXPECT_EQ(comm_set_errhandler(p, c, *of_win), Err::errhandler);
    ASSERT_EQ(errhandler_free(p, &of_win), Err::ok);
    EXPECT_EQ(handle_of(&errors_return), MPI_ERRORS_RETURN);
    EXPECT_EQ(errh_of(p, MPI_ERRORS_ABORT), &errors_abort);
}

}  // namespace
}  // namespace weft::calls
