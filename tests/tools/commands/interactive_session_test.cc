#include "tools/commands/interactive_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "engine/base/read_file.h"
#include "engine/state/state_file.h"
#include "kernels/make_backend.h"
#include "tests/testing/byte_tokenizer.h"
#include "tests/testing/random_model.h"
#include "tests/testing/temporary_directory.h"
#include "tools/commands/lone_sequence.h"

namespace hippodrome::interactive_session_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr int64_t kTokens = 12;  // of an answer

struct Said {
  std::string answers, notes;
};

class InteractiveSessionTest : public testing::Test {
 protected:
  InteractiveSessionTest() {
    H3Config config = TinyConfig();
    config.vocab_size = 257;
    config.padded_vocab_size = 264;
    model_.model = MakeTestModel(*backend_, config);
    model_.tokenizer = NewByteTokenizer();
    options_.turn.max_tokens = kTokens;
    options_.turn.ignore_eos = true;
    options_.turn.sampling.temperature = 1;
    options_.turn.sampling.seed = 5;
  }

  Said Talk(const std::string& lines, const std::string& load = "") {
    std::ostringstream answers, notes;
    const auto session =
        InteractiveSession::Open(*backend_, model_, options_, answers, notes).value();
    if (!load.empty()) {
      EXPECT_TRUE(session->Load(load).ok());
    }
    std::istringstream in(lines);
    session->Run(in);
    return {answers.str(), notes.str()};
  }
  // What the last of these lines is answered.
  std::string Last(const std::string& before, const std::string& line) {
    const std::string some = Talk(before).answers;
    const std::string all = Talk(before + line + "\n").answers;
    EXPECT_THAT(all, StartsWith(some));
    EXPECT_GT(all.size(), some.size() + 1);
    return all.substr(some.size());
  }

  const std::unique_ptr<Backend> backend_ = MakeCpuBackend({.threads = 1});
  LoadedDecoder model_;
  InteractiveOptions options_;
  const TemporaryDirectory folder_;
};

TEST_F(InteractiveSessionTest, ATurnGoesOnFromAllThatWasSaid) {
  const Said said = Talk("It was\n and then\n");
  EXPECT_THAT(said.notes, IsEmpty());
  EXPECT_NE(Last("It was\n", " and then"), Last("She was\n", " and then"));
}

TEST_F(InteractiveSessionTest, ASavedConversationGoesOnInAnotherSession) {
  // It outgrows its generator more than once.
  std::string one, two;
  for (int i = 0; i < 60; ++i) (i < 30 ? one : two) += "turn " + std::to_string(i) + "\n";
  const std::string file = folder_.File("state");
  const std::string first = Talk(one + "/save " + file + "\n").answers;
  const Said second = Talk(two, file);
  EXPECT_THAT(second.notes, IsEmpty());
  EXPECT_EQ(Talk(one + two).answers, first + second.answers);
  EXPECT_EQ(Talk("other\n/load " + file + "\n" + two).answers,
            Talk("other\n").answers + second.answers);
}

TEST_F(InteractiveSessionTest, AnEmptyLineGoesOnAsIfNothingHadStopped) {
  const std::string pieces = folder_.File("pieces");
  const std::string whole = folder_.File("whole");
  Talk("It was\n\n/save " + pieces + "\n");
  options_.turn.max_tokens = 2 * kTokens;
  Talk("It was\n/save " + whole + "\n");
  EXPECT_EQ(Talk("x\n", pieces).answers, Talk("x\n", whole).answers);
}

TEST_F(InteractiveSessionTest, TextThatAStateHeldBackComesFirst) {
  const std::string file = folder_.File("state");
  Talk("It was\n/save " + file + "\n");
  const auto generator = MakeLoneGenerator(*backend_, *model_.model, 100, {}).value();
  const StateLayout& layout = generator->state_layout();
  SavedState state = ReadStateFile(ReadSmallFile(file, 1 << 20).value(), layout).value();
  const std::string answer = Talk("\n", file).answers;
  state.pending_text = "held";
  ASSERT_TRUE(SaveStateTo(file, state, layout, {}).ok());
  EXPECT_EQ(Talk("\n", file).answers, "held" + answer);
  EXPECT_EQ(Talk("x\n", file).answers.find("held"), std::string::npos);
}

TEST_F(InteractiveSessionTest, UndoTakesATurnBackExactly) {
  const std::string one = Last("It was\n", " then");
  EXPECT_EQ(Last("It was\n then\n/undo\n", " then"), one);
  EXPECT_EQ(Last("It was\n other\n more\n/undo\n/undo\n", " then"), one);
  EXPECT_NE(Last("It was\n then\n", " then"), one);
  EXPECT_EQ(Last("It was\n/undo\n", "It was"), Talk("It was\n").answers);
}

TEST_F(InteractiveSessionTest, UndoTakesBackAResetAndALoad) {
  const std::string file = folder_.File("state");
  Talk("Once\n/save " + file + "\n");
  const std::string one = Last("It was\n", " then");
  EXPECT_EQ(Last("It was\n/reset\n/undo\n", " then"), one);
  EXPECT_EQ(Last("It was\n/load " + file + "\n/undo\n", " then"), one);
  EXPECT_EQ(Last("It was\n/reset\n", "It was"), Talk("It was\n").answers);
}

TEST_F(InteractiveSessionTest, UndoGoesBackAsFarAsItSays) {
  EXPECT_THAT(Talk("/undo\n").notes, HasSubstr("nothing to take back"));
  std::string turns, undone;
  for (size_t i = 0; i < kMostUndone + 3; ++i) turns += "a\n";
  for (size_t i = 0; i < kMostUndone; ++i) undone += "/undo\n";
  EXPECT_THAT(Talk(turns + undone).notes, IsEmpty());
  EXPECT_THAT(Talk(turns + undone + "/undo\n").notes, HasSubstr("nothing to take back"));
  EXPECT_EQ(Last(turns + undone, "b"), Last("a\na\na\n", "b"));
}

TEST_F(InteractiveSessionTest, UndoDoesNotTakeBackWhatItStartedFrom) {
  const std::string file = folder_.File("state");
  Talk("Once\n/save " + file + "\n");
  const Said said = Talk("/undo\n then\n", file);
  EXPECT_THAT(said.notes, HasSubstr("nothing to take back"));
  EXPECT_EQ(said.answers, Last("Once\n", " then"));
}

TEST_F(InteractiveSessionTest, WhatIsWrongIsSaidAndTheSessionGoesOn) {
  const std::pair<std::string, std::string> wrong[] = {
      {"", "the prompt has no tokens"},
      {"/nonsense", "/nonsense: there is no such command; /help tells"},
      {"/save", "/save: expected a FILE"},
      {"/load", "/load: expected a FILE"},
      {"/save " + folder_.File("x"), "nothing was said yet"},
      {"/load " + folder_.File("none"), "none: No such file"},
      {"/load " + folder_.Write("bad", "not a state"), "hippodrome: "}};
  const std::string answer = Talk("It was\n").answers;
  for (const auto& [line, message] : wrong) {
    const Said said = Talk(line + "\nIt was\n");
    EXPECT_THAT(said.notes, HasSubstr(message)) << line;
    EXPECT_EQ(said.answers, answer) << line;
  }
}

TEST_F(InteractiveSessionTest, ALineThatTheModelHasNoRoomForIsTakenBack) {
  H3Config config = TinyConfig();
  config.vocab_size = 257;
  config.padded_vocab_size = 264;
  config.max_position_embeddings = 40;
  model_.model = MakeTestModel(*backend_, config);
  const Said said = Talk("It was\n" + std::string(60, 'a') + "\n then\n");
  EXPECT_THAT(said.notes, HasSubstr("exceed the model's 40 positions"));
  EXPECT_EQ(said.answers, Talk("It was\n then\n").answers);
}

TEST_F(InteractiveSessionTest, AnAnswerCanBeStopped) {
  const std::string whole = Talk("It was\n").answers;
  int asked = 0;
  const auto stop_at = [&](int call) {
    asked = 0;
    options_.take_stop = [&asked, call] { return ++asked == call; };
  };
  stop_at(6);  // asked before the turn, and before each token
  const std::string file = folder_.File("state");
  const Said stopped = Talk("It was\n/save " + file + "\n");
  EXPECT_THAT(stopped.notes, IsEmpty());
  EXPECT_LT(stopped.answers.size(), whole.size());
  // The session has what was said so far.
  options_.take_stop = [] { return false; };
  const std::string then = Talk(" then\n", file).answers;
  stop_at(6);
  EXPECT_EQ(Talk("It was\n then\n").answers, stopped.answers + then);
  // Before the first token there is nothing.
  stop_at(2);
  const Said none = Talk("She\nIt was\n");
  EXPECT_THAT(none.notes, HasSubstr("stopped before the first token"));
  EXPECT_EQ(none.answers, "\n" + whole);
}

TEST_F(InteractiveSessionTest, TheSeedIsThatOfTheStateUnlessOneIsGiven) {
  const std::string file = folder_.File("state");
  const std::string one = Last("It was\n", " then");
  Talk("It was\n/save " + file + "\n");
  options_.turn.sampling.seed = 6;
  EXPECT_EQ(Talk(" then\n", file).answers, one);
  options_.keep_seed = true;
  EXPECT_NE(Talk(" then\n", file).answers, one);
}

TEST_F(InteractiveSessionTest, HelpTellsAllCommandsAndQuitEnds) {
  const Said said = Talk("/help\n/quit\nIt was\n");
  EXPECT_THAT(said.answers, IsEmpty());
  for (const char* command : {"/undo", "/save FILE", "/load FILE", "/reset", "/help", "/quit"}) {
    EXPECT_THAT(said.notes, HasSubstr(command));
  }
}

TEST_F(InteractiveSessionTest, TheSignStandsWhereALineIsRead) {
  EXPECT_THAT(Talk("/reset\n").notes, IsEmpty());
  options_.sign = true;
  EXPECT_EQ(Talk("/reset\n/quit\n").notes, "> > ");
}

}  // namespace
}  // namespace hippodrome::interactive_session_test
