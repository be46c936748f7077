#include "tools/commands/lone_sequence.h"

#include <algorithm>
#include <chrono>

#include "engine/base/durable_files.h"
#include "engine/base/one_line.h"
#include "engine/base/status.h"
#include "engine/state/state_file.h"
#include "engine/tokenizer/utf8_stream.h"

namespace hippodrome {
namespace {

// Of a prompt, between two looks at whether to stop.
constexpr std::chrono::milliseconds kPiece(50);

}  // namespace

absl::StatusOr<std::unique_ptr<Generator>> MakeLoneGenerator(Backend& backend,
                                                             const HybridH3& model, int64_t tokens,
                                                             const LoneOptions& how) {
  GeneratorOptions options{.max_sequences = 1,
                           .attention_window = how.attention_window,
                           .h3_state = how.h3_state,
                           .speculate = how.speculate,
                           .draft = how.draft};
  const int64_t chunk = backend.prefill_shape().grid;
  if (how.attention_window > 0) {
    tokens = std::min(tokens, how.attention_window + chunk + kWindowBlock);
  }
  options.key_value_bytes = (tokens + 64) * model.config().n_layer * 8 * model.config().d_model;
  return Generator::Create(backend, model, options);
}

absl::StatusOr<LoneOutput> RunLoneSequence(Generator& generator, const LoneRun& run) {
  LoneOutput output;
  Utf8Stream characters;
  const auto emit = [&](const std::string& text) {
    output.text += text;
    run.print(text);
  };
  emit(characters.Append(run.pending_text));
  std::vector<TokenEvent> events;
  bool stopping = false;
  while (output.finish == FinishReason::kNone) {
    stopping = stopping || run.stopped();
    if (stopping && (!run.saved || generator.Save(*run.saved).ok())) break;
    events.clear();
    if (generator.prefilling()) {
      // Only between two parts of a prompt is there a state.
      const auto now = Generator::Clock::now();
      generator.Prefill(stopping ? now : now + kPiece, events);
    } else {
      generator.Step(events);
    }
    for (const TokenEvent& event : events) {
      if (event.finish == FinishReason::kFailed) {
        return Internal("the model computed a value that is not a number");
      }
      output.token_ids.push_back(event.token);
      output.finish = event.finish;
      if (run.tokenizer != nullptr && event.finish != FinishReason::kEndOfText) {
        emit(characters.Append(run.tokenizer->Bytes(event.token)));
      }
    }
  }
  if (run.saved && output.finish != FinishReason::kEndOfText) {
    output.pending_text = characters.held();
  } else {
    emit(characters.Finish());
  }
  return output;
}

std::string WhyInexact(const SavedState& state, const std::string& arithmetic) {
  if (GoesOnExactly(state, arithmetic)) return "";
  if (!state.lossy && state.arithmetic == arithmetic) {
    return "the state went on from one that was not exact";
  }
  return std::string("the state is ") + (state.lossy ? "lossy, of \"" : "of \"") +
         OneLine(state.arithmetic) + "\", this is \"" + arithmetic + "\": it is not exact";
}

absl::Status SaveStateTo(const std::string& path, const SavedState& state,
                         const StateLayout& layout, const StateFileOptions& how) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string bytes, WriteStateFile(state, layout, how));
  return WriteFileDurably(path, bytes);
}

}  // namespace hippodrome
