// Field: every datatype: strided, indexed, struct, resized and subarray, small and large, a
// different one on each side.
// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_test.hpp"

using namespace overlap::test;

namespace {

std::vector<MPI_Datatype> types(int scale) {
  std::vector<MPI_Datatype> all(5);
  const int lengths[2] = {2 * scale, scale}, places[2] = {0, 3 * scale};
  const int whole[2] = {scale, 6}, part[2] = {scale, 3}, start[2] = {0, 2};
  const MPI_Aint bytes[2] = {0, static_cast<MPI_Aint>(8) * scale};
  MPI_Datatype kinds[2] = {MPI_INT, MPI_SHORT};
  const int struct_lengths[2] = {scale, 4 * scale};
  MPI_Type_vector(scale, 3, 5, MPI_INT, &all[0]);
  MPI_Type_indexed(2, lengths, places, MPI_INT, &all[1]);
  MPI_Type_create_struct(2, struct_lengths, bytes, kinds, &all[2]);
  MPI_Type_create_subarray(2, whole, part, start, MPI_ORDER_C, MPI_INT, &all[3]);
  MPI_Datatype vector = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(3 * scale, MPI_INT, &vector);
  MPI_Type_create_resized(vector, 0, 20 * static_cast<MPI_Aint>(scale), &all[4]);
  MPI_Type_free(&vector);
  for (MPI_Datatype& type : all) MPI_Type_commit(&type);
  return all;  // each is 12 * scale bytes of data
}

Bytes packed(const Bytes& data, int count, MPI_Datatype type) {
  int room = 0, position = 0;
  MPI_Pack_size(count, type, MPI_COMM_SELF, &room);
  Bytes result(static_cast<std::size_t>(room));
  MPI_Pack(data.data(), count, type, result.data(), room, &position, MPI_COMM_SELF);
  result.resize(static_cast<std::size_t>(position));
  return result;
}

}  // namespace

TEST_CASE("Field: datatypes on either side") {
  if (!paired()) return;
  for (int scale : {1, 30, 5000, 30000}) {
    auto all = types(scale);
    const std::size_t room = 30 * static_cast<std::size_t>(scale) * 3;
    for (std::size_t a = 0; a < all.size(); ++a) {
      for (std::size_t b = 0; b < all.size(); ++b) {
        if (a >= 3 && b >= 3 && a != b) continue;
        if ((a == 2) != (b == 2)) continue;  // the signatures must agree
        for (int count : {1, 3}) {
          const std::uint64_t seed = a * 100 + b * 10 + count;
          if (sender()) {
            const Bytes data = pattern(room, seed);
            const Bytes expected = packed(data, count, all[a]);
            MPI_Send(expected.data(), static_cast<int>(expected.size()), MPI_BYTE, partner(), 2,
                     MPI_COMM_WORLD);
            if (count == 1) await(partner());
            MPI_Send(data.data(), count, all[a], partner(), 1, MPI_COMM_WORLD);
          } else {
            Bytes data = empty(room), expected(12 * static_cast<std::size_t>(scale) * count);
            MPI_Recv(expected.data(), static_cast<int>(expected.size()), MPI_BYTE, partner(), 2,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            Bytes image = empty(room);
            int position = 0;
            MPI_Unpack(expected.data(), static_cast<int>(expected.size()), &position, image.data(),
                       count, all[b], MPI_COMM_SELF);
            MPI_Request request = MPI_REQUEST_NULL;
            MPI_Irecv(data.data(), count, all[b], partner(), 1, MPI_COMM_WORLD, &request);
            if (count == 1) tell(partner());
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            INFO("scale " << scale << " from " << a << " to " << b << " count " << count);
            CHECK(data == image);  // the gaps too
          }
        }
      }
    }
    for (MPI_Datatype& type : all) MPI_Type_free(&type);
  }
}
