// Finds the wrong argument. The rules are those of the inline checks in bindings.hpp, told one by one and with words.
#include "api/bindings.hpp"
#include "os/memory.hpp"

namespace weft::bindings {

namespace {

using obj::Process;

class Examination {
public:
    Examination(const Function& f, const intptr_t* values) : f_(f), v_(values), p_(*obj::process) {
        for (int i = 0; i < f.n_args; i++) {
            ArgKind k = f.args[i].kind;
            if (k == ArgKind::comm && comm_ == nullptr) comm_ = obj::comm_of(p_, handle<MPI_Comm>(i));
            if (k == ArgKind::root) root_ = static_cast<int>(v_[i]);
        }
    }

    // Handles first, then numbers and arrays, then buffers: what these mean may depend on those before.
    Finding run() {
        if (Err e = phase(); e != Err::ok) return {e, -1};
        for (int pass = 0; pass < 3; pass++)
            for (int i = 0; i < f_.n_args; i++) {
                const ArgKind k = f_.args[i].kind;
                const int own = is_handle(k) ? 0 : k == ArgKind::buf || k == ArgKind::buf_coll ? 2 : 1;
                if (own != pass || !significant(f_.args[i])) continue;
                if (Err e = one(i); e != Err::ok) return {e, i};
            }
        return {Err::ok, -1};
    }

private:
    template <class H> H handle(int i) const { return reinterpret_cast<H>(v_[i]); }
    template <class H> H loaded(int i) const { return load(reinterpret_cast<const H*>(v_[i])); }
    static const Object* head(const void* o) { return static_cast<const Object*>(o); }
    const char* name(int i) const { return f_.args[i].name; }

    static bool is_handle(ArgKind k) {
        return (k >= ArgKind::comm && k <= ArgKind::type_out && k != ArgKind::infos && k != ArgKind::requests
                && k != ArgKind::requests_in);
    }

    Err phase() const {
        if (f_.any_time) return Err::ok;
        switch (p_.phase.load(std::memory_order_acquire)) {
        case obj::Phase::active: return Err::ok;
        case obj::Phase::before_init: return fail(Err::other, "called before MPI_Init or MPI_Session_init");
        case obj::Phase::finalized: return fail(Err::other, "called after MPI_Finalize");
        case obj::Phase::forked:
            return fail(Err::other, "called in a forked child; MPI belongs to the process that initialised it");
        }
        return Err::ok;
    }

    bool significant(const Arg& a) const {
        if (a.in_place_of >= 0 && handle<void*>(a.in_place_of) == MPI_IN_PLACE) return false;
        if (a.when == Significant::always || comm_ == nullptr || comm_->kind != Kind::comm) return true;
        return a.when == Significant::root ? at_root(*comm_, root_)
             : a.when == Significant::leaf ? at_leaf(*comm_, root_) : at_part(*comm_, root_);
    }

    bool comm_good() const { return comm_ != nullptr && comm_->kind == Kind::comm; }

    Err bad_handle(Err e, const char* what, const Object* o, int i) const {
        switch (o->kind) {
        case Kind::null_handle: return fail(e, "null %s (argument %d, %s)", what, i + 1, name(i));
        case Kind::dead: return fail(e, "%s was freed before (argument %d, %s)", what, i + 1, name(i));
        case Kind::not_initialised: return fail(e, "called before MPI_Init (argument %d, %s)", i + 1, name(i));
        case Kind::finalized: return fail(e, "called after MPI_Finalize (argument %d, %s)", i + 1, name(i));
        case Kind::forked: return fail(e, "called in a forked child (argument %d, %s)", i + 1, name(i));
        default:
            return fail(e, "no %s, or a null one%s (argument %d, %s)", what,
                        WEFT_CHECK_HANDLES ? ", or an address where nothing is" : "", i + 1, name(i));
        }
    }
    Err want(Kind kind, Err e, const char* what, const void* object, int i) const {
        return head(object)->kind == kind ? Err::ok : bad_handle(e, what, head(object), i);
    }
    Err not_null(int i, Err e = Err::arg) const {
        return v_[i] != 0 ? Err::ok : fail(e, "null pointer (argument %d, %s)", i + 1, name(i));
    }
    Err not_negative(int i, Err e) const {
        const int64_t n = count_at(i);
        return n >= 0 ? Err::ok : fail(e, "%s %lld is negative (argument %d)", name(i), static_cast<long long>(n), i + 1);
    }

    Err a_type(const type::Type* t, int i) const {
        if (f_.args[i].kind == ArgKind::type_null && t->kind == Kind::null_handle) return Err::ok;
        WEFT_TRY(want(Kind::type, Err::type, "datatype", t, i));
        ArgKind k = f_.args[i].kind;
        if (k == ArgKind::type_named || k == ArgKind::type_null || k == ArgKind::type_inout) return Err::ok;
        if (t->is(type::Type::unsupported))
            return fail(Err::type, "a type that the Fortran compiler lacks (see MPI_Abi_set_fortran_info) (argument %d, %s)",
                        i + 1, name(i));
        if (k == ArgKind::type && !t->is(type::Type::committed))
            return fail(Err::type, "datatype is not committed (argument %d, %s)", i + 1, name(i));
        return Err::ok;
    }

    Err a_request(const obj::Request* r, int i, bool null_allowed) const {
        WEFT_TRY(want(Kind::request, Err::request, "request", r, i));
        return null_allowed || r != &obj::null_request
                   ? Err::ok : fail(Err::request, "null request (argument %d, %s)", i + 1, name(i));
    }

    Err some_requests(int i, int64_t n) const {
        if (n <= 0) return Err::ok;
        WEFT_TRY(not_null(i));
        for (int64_t k = 0; k < n; k++)
            if (obj::request_of(p_, handle<const MPI_Request*>(i)[k])->kind != Kind::request)
                return fail(Err::request, "element %lld is no request (argument %d, %s)", static_cast<long long>(k), i + 1, name(i));
        return Err::ok;
    }

    Err peer(int i, bool source) const {
        int r = static_cast<int>(v_[i]);
        if (!comm_good() || r == obj::proc_null || (source && r == obj::any_source) || good_rank(*comm_, r)) return Err::ok;
        return fail(Err::rank, "rank %d does not exist, the communicator has %d (argument %d, %s)", r, comm_->remote_size,
                    i + 1, name(i));
    }

    int64_t count_at(int i) const {
        const Arg& a = f_.args[i];
        if (a.kind != ArgKind::count_any) return v_[i];
        int buffer = 0;
        while (f_.args[buffer].count != i) buffer++;
        return count_meant(v_[i], v_[a.count], handle<void*>(buffer), obj::type_of(p_, handle<MPI_Datatype>(f_.args[buffer].datatype)));
    }

    // Elements of an array. Without a good communicator nobody knows, and that was reported before.
    int64_t length(const Arg& a) const {
        switch (a.length) {
        case Length::none: break;
        case Length::peers: return comm_good() ? peers(*comm_) : 0;
        case Length::members: return comm_good() ? members(*comm_) : 0;
        case Length::sources: return comm_good() ? sources(*comm_) : 0;
        case Length::destinations: return comm_good() ? destinations(*comm_) : 0;
        case Length::argument: return v_[a.count];
        }
        return 0;
    }
    obj::Ints numbers(int i) const { return {handle<const void*>(i), f_.args[i].wide}; }

    Err an_array(const Arg& a, int i) const {
        const int64_t n = length(a);
        return good_array(handle<const void*>(i), n) ? Err::ok : not_null(i);
    }
    Err some_counts(const Arg& a, int i) const {
        WEFT_TRY(an_array(a, i));
        for (int64_t k = 0; k < length(a); k++)
            if (numbers(i)[k] < 0)
                return fail(Err::count, "element %lld is %lld (argument %d, %s)", static_cast<long long>(k),
                            static_cast<long long>(numbers(i)[k]), i + 1, name(i));
        return Err::ok;
    }
    Err some_types(const Arg& a, int i) const {
        WEFT_TRY(an_array(a, i));
        const bool to_build = a.length == Length::argument;
        int counts = i;   // of communication: the array before it
        while (!to_build && f_.args[counts].kind != ArgKind::counts) counts--;
        for (int64_t k = 0; k < length(a); k++) {
            const MPI_Datatype h = handle<const MPI_Datatype*>(i)[k];
            const type::Type* t = obj::type_of(p_, h);
            if (to_build ? known(t) : usable(t) || (h == MPI_DATATYPE_NULL && numbers(counts)[k] == 0)) continue;
            return fail(Err::type, "element %lld is %s (argument %d, %s)", static_cast<long long>(k),
                        known(t) ? "not committed" : "no datatype", i + 1, name(i));
        }
        return Err::ok;
    }

    Err some_blocks(const Arg& a, const void* buf, int i) const {
        const Arg& counts = f_.args[a.count];
        if (!comm_good() || comm_->is_inter() || comm_->topology != nullptr) return Err::ok;
        const bool mine = counts.length == Length::members && i == a.count - 1;  // what a member receives
        const obj::Ints n = mine ? numbers(a.count).from(comm_->rank) : numbers(a.count);
        const int64_t blocks = mine ? 1 : length(counts);
        const bool one_type = f_.args[a.datatype].kind == ArgKind::type;
        if (one_type ? no_blocks_at(buf, n, blocks, obj::type_of(p_, handle<MPI_Datatype>(a.datatype)))
                     : no_blocks_at(buf, n, blocks, handle<const MPI_Datatype*>(a.datatype)))
            return Err::ok;
        return fail(Err::buffer, "%s as the buffer of blocks that are not empty (argument %d, %s)", obj::special_name(buf), i + 1, name(i));
    }

    Err a_buffer(const Arg& a, int i) const {
        const void* buf = handle<void*>(i);
        if (a.count < 0 || !(a.kind == ArgKind::buf ? no_data_at(buf) : no_coll_data_at(buf))) return Err::ok;
        if (f_.args[a.count].kind == ArgKind::counts) return some_blocks(a, buf, i);
        const type::Type* t = obj::type_of(p_, handle<MPI_Datatype>(a.datatype));
        const Arg& how_many = f_.args[a.count];
        const int64_t count = how_many.kind == ArgKind::count_any && v_[how_many.count] == 0 ? 0 : count_at(a.count);
        if (t->kind != Kind::type || count < 0) return Err::ok;   // reported as such
        const bool good = a.kind == ArgKind::buf_coll && comm_good() ? good_coll_buffer(buf, count, t, *comm_)
                                                                     : good_buffer(buf, count, t);
        if (good) return Err::ok;
        return fail(Err::buffer, "%s as the buffer of %lld elements (argument %d, %s)", obj::special_name(buf),
                    static_cast<long long>(count), i + 1, name(i));
    }

    Err a_handle(int i) const {
        switch (f_.args[i].kind) {
        case ArgKind::comm: return want(Kind::comm, Err::comm, "communicator", obj::comm_of(p_, handle<MPI_Comm>(i)), i);
        case ArgKind::comm_named: {
            const obj::Comm* c = obj::comm_of(p_, handle<MPI_Comm>(i));
            return is_comm_or_null(c) ? Err::ok : want(Kind::comm, Err::comm, "communicator", c, i);
        }
        case ArgKind::comm_inout:
            return want(Kind::comm, Err::comm, "communicator", obj::comm_of(p_, loaded<MPI_Comm>(i)), i);
        case ArgKind::group: return want(Kind::group, Err::group, "group", obj::group_of(p_, handle<MPI_Group>(i)), i);
        case ArgKind::group_inout:
            return want(Kind::group, Err::group, "group", obj::group_of(p_, loaded<MPI_Group>(i)), i);
        case ArgKind::op: return want(Kind::op, Err::op, "operation", obj::op_of(p_, handle<MPI_Op>(i)), i);
        case ArgKind::op_inout:
            return want(Kind::op, Err::op, "operation", obj::op_of(p_, loaded<MPI_Op>(i)), i);
        case ArgKind::errh:
            return want(Kind::errhandler, Err::errhandler, "error handler", obj::errh_of(p_, handle<MPI_Errhandler>(i)), i);
        case ArgKind::errh_inout:
            return want(Kind::errhandler, Err::errhandler, "error handler",
                        obj::errh_of(p_, loaded<MPI_Errhandler>(i)), i);
        case ArgKind::info: {
            const obj::Info* o = obj::info_of(p_, handle<MPI_Info>(i));
            return o == nullptr ? Err::ok : want(Kind::info, Err::info, "info object", o, i);
        }
        case ArgKind::info_req:
        case ArgKind::info_inout: {
            MPI_Info h = f_.args[i].kind == ArgKind::info_req ? handle<MPI_Info>(i) : loaded<MPI_Info>(i);
            const obj::Info* o = obj::info_of(p_, h);
            return o == nullptr ? fail(Err::info, "null info object (argument %d, %s)", i + 1, name(i))
                                : want(Kind::info, Err::info, "info object", o, i);
        }
        case ArgKind::win: return want(Kind::win, Err::win, "window", obj::win_of(p_, handle<MPI_Win>(i)), i);
        case ArgKind::win_named: {
            const obj::Win* w = obj::win_of(p_, handle<MPI_Win>(i));
            return is_win_or_null(w) ? Err::ok : want(Kind::win, Err::win, "window", w, i);
        }
        case ArgKind::win_inout:
            return want(Kind::win, Err::win, "window", obj::win_of(p_, loaded<MPI_Win>(i)), i);
        case ArgKind::file: return want(Kind::file, Err{MPI_ERR_FILE}, "file", obj::file_of(p_, handle<MPI_File>(i)), i);
        case ArgKind::file_inout:
            return want(Kind::file, Err{MPI_ERR_FILE}, "file", obj::file_of(p_, loaded<MPI_File>(i)), i);
        case ArgKind::session:
            return want(Kind::session, Err::session, "session", obj::session_of(p_, handle<MPI_Session>(i)), i);
        case ArgKind::session_inout:
            return want(Kind::session, Err::session, "session",
                        obj::session_of(p_, loaded<MPI_Session>(i)), i);
        case ArgKind::message_inout:
            return want(Kind::message, Err::request, "message", obj::message_of(p_, loaded<MPI_Message>(i)), i);
        case ArgKind::request: return a_request(obj::request_of(p_, handle<MPI_Request>(i)), i, false);
        case ArgKind::request_null: return a_request(obj::request_of(p_, handle<MPI_Request>(i)), i, true);
        case ArgKind::request_inout:
            return a_request(obj::request_of(p_, loaded<MPI_Request>(i)), i, false);
        case ArgKind::request_null_inout:
            WEFT_TRY(not_null(i));
            return a_request(obj::request_of(p_, loaded<MPI_Request>(i)), i, true);
        case ArgKind::type:
        case ArgKind::type_any:
        case ArgKind::type_named:
        case ArgKind::type_null: return a_type(obj::type_of(p_, handle<MPI_Datatype>(i)), i);
        case ArgKind::type_inout: return a_type(obj::type_of(p_, loaded<MPI_Datatype>(i)), i);
        case ArgKind::comm_null:
        case ArgKind::file_null: return Err::ok;
        default: return not_null(i);   // the *_out kinds
        }
    }

    Err one(int i) const {
        const Arg& a = f_.args[i];
        if (is_handle(a.kind)) return a_handle(i);
        switch (a.kind) {
        case ArgKind::count:
        case ArgKind::count_any: return not_negative(i, Err::count);
        case ArgKind::nonneg: return not_negative(i, Err::arg);
        case ArgKind::tag_send: return not_negative(i, Err::tag);
        case ArgKind::tag_recv: return v_[i] == obj::any_tag ? Err::ok : not_negative(i, Err::tag);
        case ArgKind::dest: return peer(i, false);
        case ArgKind::source: return peer(i, true);
        case ArgKind::root:
            return !comm_good() || good_root(*comm_, root_)
                       ? Err::ok : fail(Err::root, "there is no root %d (argument %d)", root_, i + 1);
        case ArgKind::rank:
            return !comm_good() || good_rank(*comm_, static_cast<int>(v_[i]))
                       ? Err::ok : fail(Err::rank, "there is no rank %d (argument %d, %s)", static_cast<int>(v_[i]), i + 1, name(i));
        case ArgKind::buf:
        case ArgKind::buf_coll: return a_buffer(a, i);
        case ArgKind::counts: return some_counts(a, i);
        case ArgKind::types: return some_types(a, i);
        case ArgKind::displs: case ArgKind::ints: case ArgKind::ints_out: case ArgKind::types_out: return an_array(a, i);
        case ArgKind::requests:
        case ArgKind::requests_in: return some_requests(i, v_[a.count]);
        case ArgKind::string: case ArgKind::string_out: case ArgKind::flag_out: case ArgKind::int_out:
        case ArgKind::int_inout: case ArgKind::count_out: case ArgKind::size_out: case ArgKind::addr_out:
        case ArgKind::status_in: case ArgKind::status_inout: case ArgKind::keyval_out: case ArgKind::keyval_inout:
            return not_null(i);
        default: return Err::ok;
        }
    }

    const Function& f_;
    const intptr_t* v_;
    Process& p_;
    obj::Comm* comm_ = nullptr;
    int root_ = 0;
};

}  // namespace

int64_t large_count_meant(int64_t given, int64_t pieces, const void* buf, const type::Type* t) {
    const int64_t low = static_cast<int32_t>(given);
    int64_t last = 0, offset = 0;
    if (given < 0 || pieces <= 0 || t->kind != Kind::type || t->extent == 0 || t->size == 0) return low;
    if (__builtin_mul_overflow(given, pieces, &last) || __builtin_mul_overflow(last - 1, t->extent, &offset)) return low;
    offset += t->extent > 0 ? t->true_lb + t->true_extent - 1 : t->true_lb;
    return os::is_mapped(reinterpret_cast<uintptr_t>(buf) + static_cast<uint64_t>(offset)) ? given : low;
}

Finding examine(const Function& f, const intptr_t* values) { return Examination(f, values).run(); }

}  // namespace weft::bindings
