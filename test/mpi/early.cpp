// P1.2, P1.3: who comes first decides between RTR and RTS: the counters have exact values.
#include "mpi_test.hpp"

#include <map>

using namespace overlap::test;

namespace {

/// Counters of this process through MPI_T.
class Counters {
public:
    Counters()
    {
        int provided = 0;
        MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
        MPI_T_pvar_session_create(&session_);
    }
    ~Counters()
    {
        MPI_T_pvar_session_free(&session_);
        MPI_T_finalize();
    }
    Counters(const Counters&) = delete;
    Counters& operator=(const Counters&) = delete;

    unsigned long long operator[](const std::string& name)
    {
        if (handles_.count(name) == 0) {
            int index = -1, count = 0;
            REQUIRE(MPI_T_pvar_get_index(("pml_speculative_" + name).c_str(), MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS);
            REQUIRE(MPI_T_pvar_handle_alloc(session_, index, nullptr, &handles_[name], &count) == MPI_SUCCESS);
        }
        unsigned long long value = 0;
        CHECK(MPI_T_pvar_read(session_, handles_[name], &value) == MPI_SUCCESS);
        return value;
    }

private:
    MPI_T_pvar_session session_{};
    std::map<std::string, MPI_T_pvar_handle> handles_;
};

constexpr int bytes = 1 << 20;

}  // namespace

TEST_CASE("P1.3 receiver early: one RTR, used, no RTS")
{
    Counters counters;
    const auto sent = counters["rtr_sent"], used = counters["rtr_used"], rts = counters["rts_sent"], put = counters["put_bytes"];
    if (receiver()) {
        Bytes data = empty(bytes);
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Irecv(data.data(), bytes, MPI_BYTE, partner(), 11, MPI_COMM_WORLD, &request);
        CHECK(counters["rtr_sent"] - sent == 1);
        tell(partner());
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(holds(data, bytes, 1));
    } else {
        const Bytes data = pattern(bytes, 1);
        await(partner());
        MPI_Send(data.data(), bytes, MPI_BYTE, partner(), 11, MPI_COMM_WORLD);
        CHECK(counters["rtr_used"] - used == 1);
        CHECK(counters["rts_sent"] - rts == 0);
        CHECK(counters["put_bytes"] - put == bytes);
    }
}

TEST_CASE("P1.2 sender early: one RTS, no RTR")
{
    Counters counters;
    const auto sent = counters["rtr_sent"], rts = counters["rts_sent"];
    if (receiver()) {
        await(partner());
        Bytes data = empty(bytes);
        MPI_Recv(data.data(), bytes, MPI_BYTE, partner(), 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(holds(data, bytes, 2));
        CHECK(counters["rtr_sent"] - sent == 0);
    } else {
        const Bytes data = pattern(bytes, 2);
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Isend(data.data(), bytes, MPI_BYTE, partner(), 12, MPI_COMM_WORLD, &request);
        tell(partner());
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(counters["rts_sent"] - rts == 1);
    }
}
