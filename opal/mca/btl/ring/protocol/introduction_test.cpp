// Connection requests: read as written, and only from those who know the secret.
// SPDX-License-Identifier: BSD-3-Clause
#include "introduction.hpp"

#include "test/support/catch.hpp"

using namespace overlap::ring;

namespace {

Secret a_secret() {
  Secret secret;
  for (std::size_t i = 0; i < secret.size(); ++i) secret[i] = std::byte(17 * i + 3);
  return secret;
}
const Introduction someone{.name = 0x123456789abcdef0, .attempt = 7, .purpose = Purpose::bulk};

}  // namespace

TEST_CASE("an introduction is read as it was written, also with padding behind it") {
  const IntroductionBytes bytes = encode(someone, a_secret());
  CHECK(decode_introduction(bytes, a_secret()) == someone);
  std::array<std::byte, 48> padded{};
  std::copy(bytes.begin(), bytes.end(), padded.begin());
  CHECK(decode_introduction(padded, a_secret()) == someone);
}

TEST_CASE("without the secret, whole, there is no introduction") {
  for (std::size_t bit = 0; bit < 128; ++bit) {
    IntroductionBytes bytes = encode(someone, a_secret());
    bytes[bit / 8] ^= std::byte(1U << bit % 8);
    CAPTURE(bit);
    CHECK_FALSE(decode_introduction(bytes, a_secret()));
  }
  CHECK_FALSE(decode_introduction(encode(someone, Secret{}), a_secret()));
}

TEST_CASE("what is no introduction of this version is refused") {
  const IntroductionBytes good = encode(someone, a_secret());
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes)
    CHECK_FALSE(decode_introduction(std::span(good).first(bytes), a_secret()));
  const auto with = [&](std::size_t index, unsigned value) {
    IntroductionBytes bytes = good;
    bytes[index] = std::byte(value);
    return decode_introduction(bytes, a_secret());
  };
  CHECK_FALSE(with(29, 0xff));  // version
  CHECK_FALSE(with(30, 2));     // purpose
  CHECK_FALSE(with(24, 0));     // the first attempt has number 1
}
