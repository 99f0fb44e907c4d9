#include "obj/handles.hpp"

#include <gtest/gtest.h>

namespace weft::obj {
namespace {

template <class H> H small(uintptr_t v) { return reinterpret_cast<H>(v); }

TEST(Handles, EveryPredefinedTypeIsFoundAndNothingElse) {
    Process& p = *process;
    int found = 0;
    for (uintptr_t v = 0; v < first_address; v++) {
        const type::Type* t = type_of(p, small<MPI_Datatype>(v));
        if (t->kind != Kind::type) continue;
        EXPECT_EQ(t->id, static_cast<int>(v));
        EXPECT_EQ(handle_of(t), small<MPI_Datatype>(v));
        found++;
    }
    EXPECT_EQ(found, type::n_rows);
    EXPECT_EQ(type_of(p, MPI_DATATYPE_NULL)->kind, Kind::null_handle);
    EXPECT_EQ(type_of(p, small<MPI_Datatype>(0))->kind, Kind::bad_handle);
}

TEST(Handles, EveryPredefinedOpIsFoundAndNothingElse) {
    Process& p = *process;
    int found = 0;
    for (uintptr_t v = 0; v < first_address; v++) {
        const op::Op* o = op_of(p, small<MPI_Op>(v));
        if (o->kind != Kind::op) continue;
        EXPECT_EQ(handle_of(o), small<MPI_Op>(v));
        found++;
    }
    EXPECT_EQ(found, op::n_rows);
    EXPECT_NE(op_of(p, MPI_OP_NULL)->kind, Kind::op);
}

TEST(Handles, SmallNumbersOfTheOtherKinds) {
    Process& p = *process;
    int comms = 0, groups = 0, requests = 0, errhandlers = 0, messages = 0;
    for (uintptr_t v = 0; v < first_address; v++) {
        Kind k = comm_of(p, small<MPI_Comm>(v))->kind;
        comms += k == Kind::comm || k == Kind::not_initialised;
        groups += group_of(p, small<MPI_Group>(v))->kind == Kind::group;
        requests += request_of(p, small<MPI_Request>(v))->kind == Kind::request;
        errhandlers += errh_of(p, small<MPI_Errhandler>(v))->kind == Kind::errhandler;
        messages += reinterpret_cast<Object*>(message_of(p, small<MPI_Message>(v)))->kind == Kind::message;
        EXPECT_NE(reinterpret_cast<Object*>(win_of(p, small<MPI_Win>(v)))->kind, Kind::win);
        EXPECT_NE(reinterpret_cast<Object*>(file_of(p, small<MPI_File>(v)))->kind, Kind::file);
    }
    EXPECT_EQ(comms, 6);         // WORLD, SELF and MPIX_COMM_1 to 4
    EXPECT_EQ(groups, 1);        // the empty one
    EXPECT_EQ(requests, 1);      // null has a sentinel
    EXPECT_EQ(errhandlers, 3);
    EXPECT_EQ(messages, 1);      // MPI_MESSAGE_NO_PROC
    EXPECT_EQ(info_of(p, MPI_INFO_NULL), nullptr);
}

TEST(Handles, NullObjectsGiveNullHandles) {
    EXPECT_EQ(handle_of(static_cast<Comm*>(nullptr)), MPI_COMM_NULL);
    EXPECT_EQ(handle_of(static_cast<Group*>(nullptr)), MPI_GROUP_NULL);
    EXPECT_EQ(handle_of(static_cast<type::Type*>(nullptr)), MPI_DATATYPE_NULL);
    EXPECT_EQ(handle_of(static_cast<op::Op*>(nullptr)), MPI_OP_NULL);
    EXPECT_EQ(handle_of(static_cast<Info*>(nullptr)), MPI_INFO_NULL);
    EXPECT_EQ(handle_of(static_cast<Errhandler*>(nullptr)), MPI_ERRHANDLER_NULL);
    EXPECT_EQ(handle_of(static_cast<Request*>(nullptr)), MPI_REQUEST_NULL);
    EXPECT_EQ(handle_of(&null_request), MPI_REQUEST_NULL);
}

}  // namespace
}  // namespace weft::obj
