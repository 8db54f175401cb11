// Tests: the words of verbs.
// SPDX-License-Identifier: BSD-3-Clause
#include "convert.hpp"

#include <arpa/inet.h>

#include <array>

#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::verbs;

TEST_CASE("every completion status of verbs has a word, and only success is success", "[verbs]") {
  for (int code = 0; code <= IBV_WC_TM_RNDV_INCOMPLETE + 3; ++code) {
    const auto status = completion_status(static_cast<ibv_wc_status>(code));
    CHECK((status == CompletionStatus::success) == (code == IBV_WC_SUCCESS));
    CHECK((status == CompletionStatus::flushed) == (code == IBV_WC_WR_FLUSH_ERR));
  }
  CHECK(completion_status(IBV_WC_RETRY_EXC_ERR) == CompletionStatus::retry_exceeded);
  CHECK(completion_status(IBV_WC_RNR_RETRY_EXC_ERR) ==
        CompletionStatus::receive_not_ready_exceeded);
  CHECK(completion_status(IBV_WC_REM_ACCESS_ERR) == CompletionStatus::remote_access_error);
  CHECK(completion_status(IBV_WC_LOC_PROT_ERR) == CompletionStatus::protection_error);
  CHECK(completion_status(IBV_WC_LOC_LEN_ERR) == CompletionStatus::length_error);
}

TEST_CASE("a receive with immediate is a receive, its number in the host's byte order", "[verbs]") {
  ibv_wc entry{};
  entry.wr_id = 77;
  entry.status = IBV_WC_SUCCESS;
  entry.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
  entry.wc_flags = IBV_WC_WITH_IMM;
  entry.imm_data = htonl(0x01020304);
  entry.byte_len = 12;
  const Completion result = completion(entry);
  CHECK(result.id == 77);
  CHECK(result.opcode == Opcode::receive);
  CHECK(result.has_immediate);
  CHECK(result.immediate == 0x01020304);
  CHECK(result.bytes == 12);
}

TEST_CASE("of a failed completion only the id and the status are taken", "[verbs]") {
  ibv_wc entry{};
  entry.wr_id = 5;
  entry.status = IBV_WC_RETRY_EXC_ERR;
  entry.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
  entry.wc_flags = IBV_WC_WITH_IMM;
  entry.byte_len = 99;
  const Completion result = completion(entry);
  CHECK(result.id == 5);
  CHECK(result.status == CompletionStatus::retry_exceeded);
  CHECK_FALSE(result.has_immediate);
  CHECK(result.bytes == 0);
}

TEST_CASE("opcodes go over and come back", "[verbs]") {
  struct Row {
    Opcode ours;
    ibv_wr_opcode work;
    ibv_wc_opcode completed;
    Opcode back;
  };
  const Row rows[] = {
      {Opcode::send, IBV_WR_SEND, IBV_WC_SEND, Opcode::send},
      {Opcode::send_with_immediate, IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, Opcode::send},
      {Opcode::write, IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, Opcode::write},
      {Opcode::write_with_immediate, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, Opcode::write},
      {Opcode::read, IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, Opcode::read},
      {Opcode::fetch_add, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, Opcode::fetch_add},
      {Opcode::compare_swap, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP, Opcode::compare_swap},
  };
  for (const Row& row : rows) {
    CHECK(work_opcode(row.ours) == row.work);
    CHECK(completion_opcode(row.completed) == row.back);
  }
  CHECK(completion_opcode(IBV_WC_RECV) == Opcode::receive);
}

TEST_CASE("rights bring what verbs wants beside them", "[verbs]") {
  CHECK(access_flags(0, true, false) == 0);
  CHECK(access_flags(access::remote_read, true, false) == IBV_ACCESS_REMOTE_READ);
  CHECK(access_flags(access::remote_write, true, false) ==
        (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE));
  const unsigned all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  CHECK(access_flags(access::any, true, false) == (all | IBV_ACCESS_REMOTE_ATOMIC));
  CHECK(access_flags(access::any, false, false) == all);
  // iWARP reads into remotely writable memory
  CHECK(access_flags(access::local_write, true, true) ==
        (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
  CHECK(access_flags(access::remote_read, true, true) == IBV_ACCESS_REMOTE_READ);
}

TEST_CASE("MTU and rates", "[verbs]") {
  CHECK(mtu_code(256) == IBV_MTU_256);
  CHECK(mtu_code(4096) == IBV_MTU_4096);
  CHECK(mtu_code(1500) == 0);
  CHECK(rate_mbytes_s(32, 2) == 12500);  // EDR 4x: 100 Gbit/s
  CHECK(rate_mbytes_s(4, 2) == 4000);    // QDR 4x: 32 Gbit/s of data
  CHECK(rate_mbytes_s(3, 2) == 0);
  CHECK(rate_mbytes_s(32, 0) == 0);
}

TEST_CASE("the last byte is only trusted where it is known", "[verbs]") {
  CHECK(last_byte_of_vendor(0x02c9) == LastByte::assumed_last);
  CHECK(last_byte_of_vendor(0xffffff) != LastByte::unknown);
  CHECK(last_byte_of_vendor(0) == LastByte::unknown);
  CHECK(last_byte_of_vendor(0x1d0f) == LastByte::unknown);
}

TEST_CASE("codes of packet sizes and their bytes", "[verbs]") {
  for (const std::uint32_t bytes : {256U, 512U, 1024U, 2048U, 4096U})
    CHECK(mtu_bytes(mtu_code(bytes)) == bytes);
  CHECK(mtu_bytes(0) == 0);
  CHECK(mtu_bytes(77) == 0);
}

TEST_CASE("a path keeps what no option changes", "[verbs]") {
  ibv_ah_attr path{};
  path.is_global = 1;
  path.sl = 3;
  path.grh.traffic_class = 104;
  path.grh.sgid_index = 2;
  set_path(path, {});
  CHECK(path.sl == 3);
  CHECK(path.grh.traffic_class == 104);
  CHECK(path.grh.sgid_index == 2);

  VerbsOptions options;
  options.service_level = 0;
  options.traffic_class = 0;
  options.gid_index = 0;
  set_path(path, options);
  CHECK(path.sl == 0);
  CHECK(path.grh.traffic_class == 0);
  CHECK(path.grh.sgid_index == 0);

  ibv_ah_attr local{};  // without a global header there is no place for the others
  options = VerbsOptions{};
  options.gid_index = 1;
  options.service_level = 15;
  options.traffic_class = 255;
  set_path(local, options);
  CHECK(local.sl == 15);
  CHECK(local.grh.traffic_class == 0);
  CHECK(local.grh.sgid_index == 0);
}

TEST_CASE("the processes of a node share the interrupts of a device", "[verbs]") {
  REQUIRE(completion_vector(0, 1234) == 0);  // none is told
  REQUIRE(completion_vector(1, 1234) == 0);
  constexpr int vectors = 8;
  std::array<int, vectors> users{};
  for (int process = 4000; process < 4000 + 2 * vectors; ++process)
    ++users.at(static_cast<std::size_t>(completion_vector(vectors, process)));
  for (const int each : users) REQUIRE(each == 2);
}
