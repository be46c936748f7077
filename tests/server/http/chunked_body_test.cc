#include "server/http/chunked_body.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace hippodrome::chunked_body_test {
namespace {

struct Decoded {
  std::string data;
  size_t rest = 0;  // bytes behind the body
  bool done = false;
  int refused = 0;
};

// Decodes `text`, which comes in pieces of `piece` bytes.
Decoded Decode(const std::string& text, size_t piece) {
  ChunkedDecoder decoder;
  Decoded decoded;
  std::string input;
  size_t sent = 0;
  while (!decoded.done) {
    const ChunkedDecoder::Piece next = decoder.Next(input);
    if (next.refusal) {
      decoded.refused = next.refusal->status;
      return decoded;
    }
    decoded.data += next.data;
    decoded.done = next.done;
    input.erase(0, next.consumed);
    if (next.consumed > 0) continue;
    if (sent == text.size()) return decoded;
    input += text.substr(sent, piece);
    sent = std::min(text.size(), sent + piece);
  }
  decoded.rest = input.size() + text.size() - sent;
  return decoded;
}

TEST(ChunkedBodyTest, HoweverItIsCut) {
  const std::string text =
      "3\r\nabc\r\n00A;name=\"value\"\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nGET";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    const Decoded decoded = Decode(text, piece);
    EXPECT_EQ(decoded.data, "abc0123456789") << piece;
    EXPECT_TRUE(decoded.done);
    EXPECT_EQ(decoded.rest, 3u);
  }
}

TEST(ChunkedBodyTest, WhatIsNotOneIsRefused) {
  const std::string bad[] = {
      "\r\n",
      "x\r\n",
      "-1\r\nabc",
      "+1\r\nabc",
      " 1\r\na\r\n",
      "1 \r\na\r\n",
      "0x1\r\na\r\n",
      "1\na\r\n",
      "1\r\nabc",
      "1\r\na\n0\r\n\r\n",
      "ffffffffffffffff\r\n",
      "10000000000000000\r\n",
      "1;" + std::string(300, 'x') + "\r\n",
      std::string(300, '0'),
      std::string("1;\0\r\na\r\n", 9),
      "0\r\nTrailer: x\n\r\n",
      "0\r\nX: " + std::string(5000, 'x'),
  };
  for (const std::string& text : bad) EXPECT_EQ(Decode(text, 1000).refused, 400) << text;
  std::string trailers = "0\r\n";
  for (int i = 0; i < 1000; ++i) trailers += "X: y\r\n";
  EXPECT_EQ(Decode(trailers + "\r\n", 1000).refused, 400);
}

TEST(ChunkedBodyTest, TooManyChunks) {
  std::string text;
  for (int i = 0; i < ChunkedDecoder::kMaxChunks; ++i) text += "1\r\nx\r\n";
  EXPECT_TRUE(Decode(text + "0\r\n\r\n", text.size()).done);
  EXPECT_EQ(Decode(text + "1\r\nx\r\n0\r\n\r\n", text.size()).refused, 413);
}

// Whatever comes: no more data than there is, and an end.
TEST(ChunkedBodyTest, AnyBytes) {
  std::mt19937 random(1);
  const std::string alphabet = "0123abcf;\r\n\r\n\r\nX:";
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (unsigned i = 0; i < random() % 40; ++i) text += alphabet[random() % alphabet.size()];
    EXPECT_LE(Decode(text, 1 + random() % 8).data.size(), text.size());
  }
}

}  // namespace
}  // namespace hippodrome::chunked_body_test
