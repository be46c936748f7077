#include "engine/state/state_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <set>

#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "engine/base/xxh3.h"
#include "tests/testing/saved_states.h"
#include "tests/testing/state_file_parts.h"

namespace hippodrome::state_file_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// No key: it tells whether all parts are there, in their order.
std::string TestSigner(std::span<const std::span<const std::byte>> parts) {
  Xxh3 xxh3;
  xxh3.Add("key");
  for (const auto part : parts) xxh3.Add(part);
  return xxh3.Hex();
}

std::string Written(const SavedState& state, const StateFileOptions& options = {}) {
  return WriteStateFile(state, SmallStateLayout(), options).value();
}

absl::Status ReadError(const std::string& bytes, const StateFileLimits& limits = {}) {
  return ReadStateFile(bytes, SmallStateLayout(), limits).status();
}

TEST(StateFileTest, GivesTheSameStateBack) {
  for (const int64_t position : {1, 5, 200}) {
    SavedState state = SmallState(position);
    EXPECT_EQ(ReadStateFile(Written(state), SmallStateLayout()).value(), state);
    state.last_token.reset();
    state.tokens.clear();
    EXPECT_EQ(ReadStateFile(Written(state), SmallStateLayout()).value(), state);
  }
}

TEST(StateFileTest, HoldsCheckpoints) {
  SavedState state = SmallStateWith(30, {8, 16, 24});
  const std::string bytes = Written(state);
  EXPECT_EQ(ReadStateFile(bytes, SmallStateLayout()).value(), state);
  EXPECT_EQ(SummarizeStateFile(bytes).value().checkpoints, (std::vector<int64_t>{8, 16, 24}));
  const StateFileParts parts(bytes);
  EXPECT_EQ(parts.metadata.at("checkpoints"), "8 16 24");
  EXPECT_TRUE(parts.tensors.contains("checkpoints.2.layers.2.modes"));
  EXPECT_FALSE(parts.tensors.contains("checkpoints.0.layers.1.keys"));
  EXPECT_FALSE(StateFileParts(Written(SmallState(30))).metadata.contains("checkpoints"));
  const SavedState lossy =
      ReadStateFile(Written(state, {.lossy = true}), SmallStateLayout()).value();
  const float exact = (*state.checkpoints[1].layers)[2][1][3];
  EXPECT_NEAR((*lossy.checkpoints[1].layers)[2][1][3], exact, std::abs(exact) / 256);
}

// Whatever the limit is: the file is below it, or has no checkpoints any more.
TEST(StateFileTest, LeavesTheOldestCheckpointsOutThatDoNotFit) {
  const SavedState state = SmallStateWith(200, {64, 128, 192});
  const size_t whole = Written(state).size();
  const size_t bare = Written(SmallState(200)).size();
  std::set<size_t> kept;
  for (size_t most = bare; most < whole + 600; most += 10) {
    const std::string bytes = Written(state, {.most_bytes = most});
    SavedState expected = state;
    SavedState read = ReadStateFile(bytes, SmallStateLayout()).value();
    kept.insert(read.checkpoints.size());
    expected.checkpoints.erase(
        expected.checkpoints.begin(),
        expected.checkpoints.end() - static_cast<int64_t>(read.checkpoints.size()));
    EXPECT_EQ(read, expected);
    EXPECT_TRUE(read.checkpoints.empty() || bytes.size() <= most) << most;
  }
  EXPECT_EQ(kept, (std::set<size_t>{0, 1, 2, 3}));
  EXPECT_EQ(Written(state, {.most_bytes = 1}).size(), bare);
}

TEST(StateFileTest, HasTheInputsOfPendingTokensWhereThereAreAny) {
  const SavedState state = SmallState(13);
  const std::string file = Written(state);
  EXPECT_EQ(ReadStateFile(file, SmallStateLayout()).value(), state);
  StateFileParts parts(file);
  EXPECT_EQ(parts.tensors.at("layers.2.pending").spec.shape, (std::vector<int64_t>{5, 1, 1, 4}));
  parts.tensors.erase("layers.2.pending");
  EXPECT_EQ(Message(ReadStateFile(parts.Sealed(), SmallStateLayout()).status()),
            "layers.2.pending: missing");

  // None in any layer: a state of a backend that has taken all tokens in.
  parts.tensors.erase("layers.0.pending");
  SavedState settled = state;
  for (SavedLayer& layer : settled.layers) {
    if (!layer.arrays.empty()) layer.arrays[2].clear();
  }
  EXPECT_EQ(ReadStateFile(parts.Sealed(), SmallStateLayout()).value(), settled);
  EXPECT_EQ(StateFileParts(Written(SmallState(16))).tensors.count("layers.0.pending"), 0u);
}

TEST(StateFileTest, RefusesMorePendingTokensThanABlockHas) {
  StateFileParts parts(Written(SmallState(13)));
  parts.metadata["position"] = "12";
  parts.tensors.erase("tokens");
  for (const char* rows : {"layers.1.keys", "layers.1.values"}) {
    parts.tensors.at(rows).spec.shape = {12, 4};
    parts.tensors.at(rows).data.resize(12 * 4 * sizeof(float));
  }
  EXPECT_EQ(Message(ReadStateFile(parts.Sealed(), SmallStateLayout()).status()),
            "layers.0.pending: F32 [5, 1, 1, 4], expected F32 [4, 1, 1, 4]");
}

TEST(StateFileTest, SaysThatItIsNotExact) {
  SavedState state = SmallState(5);
  EXPECT_FALSE(StateFileParts(Written(state)).metadata.contains("exact"));
  state.exact = false;
  EXPECT_EQ(ReadStateFile(Written(state), SmallStateLayout()).value(), state);
  EXPECT_FALSE(SummarizeStateFile(Written(state)).value().exact);
}

TEST(StateFileTest, KeepsEveryBitOfANumber) {
  SavedState state = SmallState(1);
  state.layers[0].arrays[0][0] = -0.0f;
  state.layers[0].arrays[0][1] = std::numeric_limits<float>::denorm_min();
  state.layers[0].arrays[0][2] = std::numeric_limits<float>::max();
  const SavedState read = ReadStateFile(Written(state), SmallStateLayout()).value();
  EXPECT_EQ(read, state);
  EXPECT_TRUE(std::signbit(read.layers[0].arrays[0][0]));
}

TEST(StateFileTest, LeavesTokensOut) {
  SavedState state = SmallState(5);
  const std::string bytes = Written(state, {.tokens = false});
  state.tokens.clear();
  EXPECT_EQ(ReadStateFile(bytes, SmallStateLayout()).value(), state);
}

// Of a state whose attention saw a window.
TEST(StateFileTest, RowsThatWereDroppedAreNotInIt) {
  StateLayout layout = SmallStateLayout();
  layout.window = 70;
  SavedState state = SmallState(140);
  state.first_row = 64;
  for (std::vector<float>* rows : {&state.layers[1].keys, &state.layers[1].values}) {
    rows->erase(rows->begin(), rows->begin() + 64 * 4);
  }
  const std::string file = WriteStateFile(state, layout).value();
  EXPECT_EQ(ReadStateFile(file, layout).value(), state);
  EXPECT_EQ(SummarizeStateFile(file)->first_row, 64);
  StateFileParts parts(file);
  EXPECT_EQ(parts.metadata.at("first_row"), "64");
  EXPECT_EQ(parts.tensors.at("layers.1.keys").spec.shape, (std::vector<int64_t>{76, 4}));

  const absl::Status whole = ReadStateFile(file, SmallStateLayout()).status();
  EXPECT_EQ(whole.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Field(whole), "first_row") << whole;
  layout.window = 80;  // sees all
  EXPECT_EQ(Field(ReadStateFile(file, layout).status()), "first_row");
  for (const char* wrong : {"0", "-1", "141", "9223372036854775807", "x", "064"}) {
    parts.metadata["first_row"] = wrong;
    EXPECT_EQ(Field(ReadStateFile(parts.Sealed(), layout).status()), "first_row") << wrong;
  }
  parts.metadata["first_row"] = "63";
  EXPECT_EQ(Field(ReadStateFile(parts.Sealed(), layout).status()), "layers.1.keys");
}

TEST(StateFileTest, KeepsTheTextThatIsPending) {
  SavedState state = SmallState(5);
  EXPECT_EQ(StateFileParts(Written(state)).metadata.count("pending_text"), 0u);
  state.pending_text = std::string("a\0\xe2\xff", 4);
  const std::string bytes = Written(state);
  EXPECT_EQ(StateFileParts(bytes).metadata["pending_text"], "6100e2ff");
  EXPECT_EQ(ReadStateFile(bytes, SmallStateLayout()).value(), state);
  EXPECT_EQ(SummarizeStateFile(bytes)->pending_text, state.pending_text);
  state.pending_text.assign(kMaxPendingText, 'x');
  EXPECT_EQ(ReadStateFile(Written(state), SmallStateLayout()).value(), state);
  state.pending_text += 'x';
  EXPECT_THAT(Message(WriteStateFile(state, SmallStateLayout()).status()),
              StartsWith("pending_text: 259 bytes, expected at most 258"));
}

TEST(StateFileTest, EqualStatesAreEqualBytes) {
  EXPECT_EQ(Written(SmallState(5)), Written(SmallState(5)));
  EXPECT_NE(Written(SmallState(5, 1)), Written(SmallState(5, 2)));
}

TEST(StateFileTest, ALossyOneIsHalfAndSaysSo) {
  const SavedState state = SmallState(500);
  const std::string bytes = Written(state, {.lossy = true, .tokens = false});
  EXPECT_LT(static_cast<double>(bytes.size()),
            0.7 * static_cast<double>(Written(state, {.tokens = false}).size()));
  const SavedState read = ReadStateFile(bytes, SmallStateLayout()).value();
  EXPECT_TRUE(read.lossy);
  EXPECT_EQ(read.position, 500);
  for (size_t i = 0; i < read.layers[1].keys.size(); ++i) {
    const float exact = state.layers[1].keys[i];
    EXPECT_NEAR(read.layers[1].keys[i], exact, std::abs(exact) / 256);
  }
  EXPECT_EQ(Written(read, {.tokens = false}), bytes) << "it stays lossy, and loses no more";
}

TEST(StateFileTest, TheChecksumIsOfWhatTheFormatSays) {
  StateFileParts parts(Written(SmallState(5), {.sign = TestSigner}));
  const std::string checksum = parts.metadata["checksum"];
  parts.Sealed();
  EXPECT_EQ(parts.metadata["checksum"], checksum);
  const std::string canonical = parts.Canonical();
  const std::span<const std::byte> whole = std::as_bytes(std::span(canonical));
  EXPECT_EQ(parts.metadata["signature"], TestSigner({&whole, 1}));
}

TEST(StateFileTest, TheWayOfWritingTheHeaderDoesNotMatter) {
  const SavedState state = SmallState(5);
  const StateFileParts parts(Written(state));  // sorted by name, unlike what was written
  EXPECT_NE(parts.Joined(), Written(state));
  EXPECT_EQ(ReadStateFile(parts.Joined(), SmallStateLayout()).value(), state);
}

TEST(StateFileTest, WritesNothingThatItWouldNotRead) {
  SavedState state = SmallState(5);
  state.layers[2].arrays[1][3] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(Message(WriteStateFile(state, SmallStateLayout()).status()),
              StartsWith("layers.2.modes: element 3 is not a finite number"));
  state = SmallState(5);
  state.layers[2].arrays[1][3] = std::numeric_limits<float>::max();
  EXPECT_TRUE(WriteStateFile(state, SmallStateLayout()).ok());
  EXPECT_THAT(Message(WriteStateFile(state, SmallStateLayout(), {.lossy = true}).status()),
              StartsWith("layers.2.modes: element 3 is not a finite number"));
  state = SmallState(5);
  state.layers[1].keys.pop_back();
  EXPECT_THAT(Message(WriteStateFile(state, SmallStateLayout()).status()),
              StartsWith("layers.1.keys: "));
}

// ---- What is refused ---------------------------------------------------------------------------

struct Broken {
  std::string message;
  std::function<void(StateFileParts&)> change;
};

void SetFloat(StateFileParts::Tensor& tensor, size_t index, float value) {
  std::memcpy(tensor.data.data() + index * sizeof(value), &value, sizeof(value));
}

std::vector<Broken> BrokenFields() {
  return {
      {"format: missing", [](StateFileParts& p) { p.metadata.erase("format"); }},
      {"format: \"other\"", [](StateFileParts& p) { p.metadata["format"] = "other"; }},
      {"version: missing", [](StateFileParts& p) { p.metadata.erase("version"); }},
      {"version: \"2\", expected \"1\"", [](StateFileParts& p) { p.metadata["version"] = "2"; }},
      {"model: missing", [](StateFileParts& p) { p.metadata.erase("model"); }},
      {"arithmetic: missing", [](StateFileParts& p) { p.metadata.erase("arithmetic"); }},
      {"position: missing", [](StateFileParts& p) { p.metadata.erase("position"); }},
      {"position: \"05\" is not", [](StateFileParts& p) { p.metadata["position"] = "05"; }},
      {"position: \"5 \" is not", [](StateFileParts& p) { p.metadata["position"] = "5 "; }},
      {"position: \"\" is not", [](StateFileParts& p) { p.metadata["position"] = ""; }},
      {"position: \"9223372036854775808\"",
       [](StateFileParts& p) { p.metadata["position"] = "9223372036854775808"; }},
      {"tokens: I32 [5], expected I32 [6]",
       [](StateFileParts& p) { p.metadata["position"] = "6"; }},
      {"layers.1.keys: F32 [5, 4], expected F32 [6, 4]",
       [](StateFileParts& p) {
         p.metadata["position"] = "6";
         p.tensors.erase("tokens");
       }},
      {"seed: \"-1\"", [](StateFileParts& p) { p.metadata["seed"] = "-1"; }},
      {"seed: missing", [](StateFileParts& p) { p.metadata.erase("seed"); }},
      {"created: missing", [](StateFileParts& p) { p.metadata.erase("created"); }},
      {"last_token: \"x\"", [](StateFileParts& p) { p.metadata["last_token"] = "x"; }},
      {"last_token: 50, expected 0 to 49",
       [](StateFileParts& p) { p.metadata["last_token"] = "50"; }},
      {"pending_text: expected bytes", [](StateFileParts& p) { p.metadata["pending_text"] = ""; }},
      {"pending_text: expected bytes", [](StateFileParts& p) { p.metadata["pending_text"] = "6"; }},
      {"pending_text: expected bytes",
       [](StateFileParts& p) { p.metadata["pending_text"] = "6A"; }},
      {"pending_text: 518 digits, expected at most 516",
       [](StateFileParts& p) { p.metadata["pending_text"] = std::string(518, '0'); }},
      {"lossy: \"false\"", [](StateFileParts& p) { p.metadata["lossy"] = "false"; }},
      {"layers.0.shift_inputs: F32 [4, 4], expected BF16 [4, 4]",
       [](StateFileParts& p) { p.metadata["lossy"] = "true"; }},
      {"layers.0.modes: missing", [](StateFileParts& p) { p.tensors.erase("layers.0.modes"); }},
      {"layers.1.values: missing", [](StateFileParts& p) { p.tensors.erase("layers.1.values"); }},
      {"layers.0.keys: the model has no such tensor",
       [](StateFileParts& p) {
         p.tensors["layers.0.keys"] = {{"layers.0.keys", DType::kF32, {1}}, "1234"};
       }},
      {"layers.2.modes: F32 [2, 2, 4, 1, 1], expected F32 [1, 1, 4, 2, 2]",
       [](StateFileParts& p) { p.tensors["layers.2.modes"].spec.shape = {2, 2, 4, 1, 1}; }},
      {"layers.2.modes: I32",
       [](StateFileParts& p) { p.tensors["layers.2.modes"].spec.dtype = DType::kI32; }},
      {"layers.0.modes: element 3 is not a finite number",
       [](StateFileParts& p) { SetFloat(p.tensors["layers.0.modes"], 3, std::nanf("")); }},
      {"layers.1.keys: element 19 is not a finite number",
       [](StateFileParts& p) {
         SetFloat(p.tensors["layers.1.keys"], 19, -std::numeric_limits<float>::infinity());
       }},
      {"tokens: -1, expected 0 to 49",
       [](StateFileParts& p) { p.tensors["tokens"].data.replace(0, 4, "\xff\xff\xff\xff"); }},
  };
}

std::vector<Broken> BrokenCheckpoints() {
  std::vector<Broken> broken = {
      {"checkpoints.1.layers.0.shift_inputs: missing",
       [](StateFileParts& p) { p.metadata["checkpoints"] = "8 16"; }},
      {"checkpoints.0.layers.0.modes: the model has no such tensor",
       [](StateFileParts& p) { p.metadata.erase("checkpoints"); }},
      {"checkpoints.0.layers.2.modes: missing",
       [](StateFileParts& p) { p.tensors.erase("checkpoints.0.layers.2.modes"); }},
      {"checkpoints.0.layers.2.modes: F32 [16], expected F32 [1, 1, 4, 2, 2]",
       [](StateFileParts& p) { p.tensors["checkpoints.0.layers.2.modes"].spec.shape = {16}; }},
      {"checkpoints.0.layers.0.modes: element 3 is not a finite number",
       [](StateFileParts& p) {
         SetFloat(p.tensors["checkpoints.0.layers.0.modes"], 3, std::nanf(""));
       }},
      {"exact: \"true\"", [](StateFileParts& p) { p.metadata["exact"] = "true"; }},
  };
  for (const char* text :
       {"", " ", "8 ", " 8", "08", "x", "8,16", "8  16", "9223372036854775808"}) {
    broken.push_back(
        {"checkpoints: \"", [text](StateFileParts& p) { p.metadata["checkpoints"] = text; }});
  }
  for (const char* text : {"0", "-8", "20", "21", "9223372036854775807"}) {
    broken.push_back({std::string("checkpoints: ") + text + ", expected 1 to 19",
                      [text](StateFileParts& p) { p.metadata["checkpoints"] = text; }});
  }
  std::string many = "1";
  for (int64_t i = 0; i < kMaxCheckpoints; ++i) many += " 1";
  broken.push_back({"checkpoints: more than 64",
                    [many](StateFileParts& p) { p.metadata["checkpoints"] = many; }});
  return broken;
}

TEST(StateFileTest, NamesTheCheckpointThatIsWrong) {
  for (const Broken& broken : BrokenCheckpoints()) {
    StateFileParts parts(Written(SmallStateWith(20, {8})));
    broken.change(parts);
    const absl::Status status = ReadError(parts.Sealed());
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << broken.message << " " << status;
    EXPECT_THAT(Message(status), StartsWith(broken.message));
  }
}

TEST(StateFileTest, NamesTheFieldThatIsWrong) {
  for (const Broken& broken : BrokenFields()) {
    StateFileParts parts(Written(SmallState(5)));
    broken.change(parts);
    const absl::Status status = ReadError(parts.Sealed());
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << broken.message << " " << status;
    EXPECT_THAT(Message(status), StartsWith(broken.message));
    EXPECT_THAT(Message(status), testing::Not(HasSubstr("\n")));
  }
}

TEST(StateFileTest, AnotherModelIsAFailedPrecondition) {
  StateLayout other = SmallStateLayout();
  other.model[0] = 'f';
  const absl::Status status = ReadStateFile(Written(SmallState(5)), other).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Message(status), StartsWith("model: the state is of 0123"));
}

TEST(StateFileTest, ChangesWithoutAChecksumAreRefused) {
  for (const char* name :
       {"arithmetic", "model", "seed", "created", "last_token", "pending_text"}) {
    StateFileParts parts(Written(SmallState(5)));
    parts.metadata[name] = "8";
    EXPECT_THAT(Message(ReadError(parts.Joined())), StartsWith("checksum: ")) << name;
  }
  StateFileParts parts(Written(SmallState(5)));
  parts.tensors["layers.1.values"].data[3] ^= 1;
  EXPECT_THAT(Message(ReadError(parts.Joined())), StartsWith("checksum: "));
  parts.metadata.erase("checksum");
  EXPECT_THAT(Message(ReadError(parts.Joined())), StartsWith("checksum: missing"));
}

TEST(StateFileTest, ASignatureProvesWhoWroteIt) {
  const StateFileLimits signed_only{.sign = TestSigner};
  const std::string bytes = Written(SmallState(5), {.sign = TestSigner});
  EXPECT_TRUE(ReadError(bytes, signed_only).ok());
  EXPECT_TRUE(ReadError(bytes).ok()) << "who has no key reads it all the same";
  EXPECT_THAT(Message(ReadError(Written(SmallState(5)), signed_only)),
              StartsWith("signature: missing"));
  StateFileParts parts(bytes);
  parts.metadata["seed"] = "3";  // with a right checksum
  EXPECT_THAT(Message(ReadError(parts.Sealed(), signed_only)), StartsWith("signature: it is not"));
  parts = StateFileParts(bytes);
  parts.metadata["signature"].pop_back();
  EXPECT_THAT(Message(ReadError(parts.Joined(), signed_only)), StartsWith("signature: it is not"));
  // Two entries that are written as one have the same letters in a row.
  parts = StateFileParts(Written(SmallState(5), {.lossy = true, .sign = TestSigner}));
  parts.metadata.erase("lossy");
  parts.metadata.erase("last_token");
  parts.metadata["last_token 1 7\n5 lossy"] = "true";
  EXPECT_THAT(Message(ReadError(parts.Sealed(), signed_only)), StartsWith("signature: it is not"));
}

TEST(StateFileTest, MoreBytesThanTheLimitAreNotLookedAt) {
  const std::string bytes = Written(SmallState(5));
  EXPECT_TRUE(ReadError(bytes, {.most_bytes = bytes.size()}).ok());
  EXPECT_EQ(Message(ReadError(bytes, {.most_bytes = bytes.size() - 1})),
            "state: " + std::to_string(bytes.size()) + " bytes, expected at most " +
                std::to_string(bytes.size() - 1));
}

TEST(StateFileTest, SummarizesWithoutTheModel) {
  const std::string bytes = Written(SmallState(5), {.sign = TestSigner});
  const StateFileSummary summary = SummarizeStateFile(bytes).value();
  EXPECT_EQ(summary.model, SmallStateLayout().model);
  EXPECT_EQ(summary.arithmetic, "cpu AVX2 f32");
  EXPECT_EQ(summary.position, 5);
  EXPECT_EQ(summary.last_token, 7);
  EXPECT_EQ(summary.seed, UINT64_MAX - 1);
  EXPECT_EQ(summary.created, 1800000000);
  EXPECT_FALSE(summary.lossy);
  EXPECT_EQ(summary.checksum.size(), 32u);
  EXPECT_EQ(summary.signature.size(), 32u);
  ASSERT_EQ(summary.tensors.size(), 9u);
  EXPECT_EQ(summary.tensors[0].name, "layers.0.modes");
  StateFileParts parts(bytes);
  parts.tensors["tokens"].data[0] ^= 1;
  EXPECT_THAT(Message(SummarizeStateFile(parts.Joined()).status()), StartsWith("checksum: "));
  EXPECT_FALSE(SummarizeStateFile("no state").ok());
}

// ---- Damage ------------------------------------------------------------------------------------

TEST(StateFileTest, EveryCutIsRefused) {
  const std::string bytes = Written(SmallStateWith(5, {2}));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_TRUE(absl::IsInvalidArgument(ReadError(bytes.substr(0, size)))) << size;
  }
}

#ifdef __SANITIZE_ADDRESS__
constexpr int kDamagedFiles = 10'000;
#else
constexpr int kDamagedFiles = 100'000;
#endif

// Flips up to 8 bits of a file, or also cuts it: it is refused as damaged, or says the same.
TEST(StateFileTest, RandomDamageIsRefusedOrChangesNothing) {
  std::mt19937_64 random(16);
  const SavedState state = SmallStateWith(5, {2, 4});
  const std::string good = Written(state);
  for (int round = 0; round < kDamagedFiles; ++round) {
    std::string bytes = good;
    if (round % 4 == 0) bytes.resize(random() % bytes.size());
    const uint64_t flips = 1 + random() % 8;
    for (uint64_t i = 0; i < flips && !bytes.empty(); ++i) {
      bytes[random() % bytes.size()] ^= static_cast<char>(1 << (random() % 8));
    }
    const auto read = ReadStateFile(bytes, SmallStateLayout());
    if (read.ok()) {
      EXPECT_EQ(*read, state) << "round " << round;
    } else {
      EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << round << " " << read.status();
    }
  }
}

}  // namespace
}  // namespace hippodrome::state_file_test
