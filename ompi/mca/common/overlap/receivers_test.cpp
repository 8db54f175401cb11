// Messages that come before their receivers have been registered.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/receivers.hpp"

#include "ompi/mca/common/overlap/settings.hpp"
#include "test/support/catch.hpp"

#include <string>
#include <utility>

using namespace overlap;

namespace {

constexpr mca_btl_base_tag_t own_tag = 0x50, added_tag = 0x53, foreign_tag = 0x41;

std::string taken_in;  // each message behind its tag's letter

template <char letter>
void take_in(const Received& received) noexcept {
  taken_in += letter;
  for (std::size_t i = 0; i < received.segment_count; ++i)
    taken_in.append(reinterpret_cast<const char*>(received.data(i)), received.size(i));
}

mca_btl_active_message_callback_t& trigger(mca_btl_base_tag_t tag) {
  return mca_btl_base_active_message_trigger[tag];
}

/// A BML that only notes who registers.
class Bml {
 public:
  Bml() {
    mca_bml.bml_register = [](mca_btl_base_tag_t tag, mca_btl_base_module_recv_cb_fn_t callback,
                              void* context) -> int {
      if (tag == refused) return OMPI_ERR_OUT_OF_RESOURCE;
      trigger(tag).cbfunc = callback;
      trigger(tag).cbdata = context;
      return OMPI_SUCCESS;
    };
    refused = 0;
    taken_in.clear();
  }
  ~Bml() {
    hand_over_early_messages();
    remove_receiver(added_tag);
    mca_bml.bml_register = before_;
    for (const mca_btl_base_tag_t tag : {own_tag, added_tag, foreign_tag}) trigger(tag) = {};
  }
  Bml(const Bml&) = delete;
  Bml& operator=(const Bml&) = delete;

  static inline mca_btl_base_tag_t refused = 0;

 private:
  mca_bml_base_module_register_fn_t before_ = mca_bml.bml_register;
};

void arrive(mca_btl_base_tag_t tag, std::string bytes) {
  deliver_message(nullptr, nullptr, tag, bytes.data(), bytes.size());
}

int register_added() { return register_receiver<take_in<'a'>>(added_tag); }

}  // namespace

TEST_CASE("Early messages: kept in the order in which they came, then handed to their receivers") {
  const Bml bml;
  add_receiver({added_tag, register_added});
  REQUIRE(keep_early_messages({own_tag}) == OMPI_SUCCESS);
  arrive(own_tag, "1");
  arrive(added_tag, "2");
  arrive(own_tag, "3");
  CHECK(taken_in.empty());
  REQUIRE(register_receiver<take_in<'o'>>(own_tag) == OMPI_SUCCESS);
  REQUIRE(register_added_receivers() == OMPI_SUCCESS);
  const std::uint64_t counted = common::counters.early_kept;
  hand_over_early_messages();
  CHECK(taken_in == "o1a2o3");
  CHECK(common::counters.early_kept == counted + 3);
  arrive(own_tag, "4");
  hand_over_early_messages();  // a later call has nothing to hand over
  CHECK(taken_in == "o1a2o3o4");
  CHECK(common::counters.early_kept == counted + 3);
}

TEST_CASE("Early messages: dropped where nobody has registered; nothing is kept any more") {
  const Bml bml;
  trigger(foreign_tag).cbfunc = receive_callback<take_in<'f'>>();
  REQUIRE(keep_early_messages({own_tag}) == OMPI_SUCCESS);
  arrive(own_tag, "1");
  arrive(foreign_tag, "2");
  hand_over_early_messages();
  CHECK(taken_in == "f2");
  CHECK(trigger(own_tag).cbfunc == nullptr);
  CHECK(trigger(foreign_tag).cbfunc != nullptr);
}

TEST_CASE("Early messages: a thread of a BTL that finds the callback too late loses nothing") {
  const Bml bml;
  REQUIRE(keep_early_messages({own_tag}) == OMPI_SUCCESS);
  CHECK(keeps_early_messages());
  const mca_btl_active_message_callback_t found = trigger(own_tag);
  REQUIRE(register_receiver<take_in<'o'>>(own_tag) == OMPI_SUCCESS);
  hand_over_early_messages();
  CHECK_FALSE(keeps_early_messages());
  deliver_message(found, nullptr, nullptr, own_tag, "1", 1);
  CHECK(taken_in == "o1");
  trigger(own_tag) = {};
  deliver_message(found, nullptr, nullptr, own_tag, "2", 1);  // nobody takes it any more
  CHECK(taken_in == "o1");
}

TEST_CASE("Early messages: a BML's refusal to register is told") {
  const Bml bml;
  Bml::refused = own_tag;
  CHECK(keep_early_messages({own_tag}) == OMPI_ERR_OUT_OF_RESOURCE);
  Bml::refused = added_tag;
  add_receiver({added_tag, register_added});
  CHECK(register_added_receivers() == OMPI_ERR_OUT_OF_RESOURCE);
  remove_receiver(added_tag);
  CHECK(register_added_receivers() == OMPI_SUCCESS);
}
