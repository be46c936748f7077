#include "tools/train/session/run_description.h"

#include <fmt/format.h>

#include <ranges>

#include "tools/convert/model_card.h"

namespace hippodrome {
namespace {

std::string Row(const std::string& name, const std::string& value) {
  return "| " + name + " | " + value + " |\n";
}

std::string FileNames(const std::vector<std::string>& paths) {
  std::string names;
  for (const std::string& path : paths) names += (names.empty() ? "" : ", ") + CardFileName(path);
  return names;
}

// The last value of that name, as a row; nothing where no line has one.
std::string LastFigure(const std::vector<MetricsLine>& lines, const std::string& name,
                       const std::string& label) {
  for (const MetricsLine& line : std::views::reverse(lines)) {
    const auto value = line.values.find(name);
    if (value != line.values.end()) return Row(label, fmt::format("{:.4f}", value->second));
  }
  return "";
}

// The lines up to the evaluation that the model is of.
std::vector<MetricsLine> UpToModel(const TrainingPosition& position,
                                   const std::vector<MetricsLine>& lines) {
  std::vector<MetricsLine> some = lines;
  if (!position.best.has_value()) return some;
  std::erase_if(some, [&](const MetricsLine& line) { return line.step > position.best->step; });
  return some;
}

}  // namespace

std::string DescribeRun(const TrainingRun& run, const TrainingPosition& position,
                        const std::vector<MetricsLine>& lines) {
  const std::string begun =
      run.model.from.empty() ? "random parameters" : "the model " + CardFileName(run.model.from);
  const std::string data =
      IsSynthetic(run.objective) ? "made up by the objective" : FileNames(run.data.train);
  std::string text = "A run of `hippodrome train`; `training.json` has all of its file.\n\n";
  text += "| | |\n|---|---|\n";
  text += Row("began with", begun);
  text += Row("objective", Name(run.objective));
  text += Row("data", data);
  if (!run.data.valid.empty()) text += Row("validation data", FileNames(run.data.valid));
  text += Row("steps", std::to_string(position.step));
  if (position.best.has_value()) {
    text += Row("the model is of step",
                std::to_string(position.best->step) + ", which has the best validation figure");
  }
  text += Row("tokens", std::to_string(position.tokens));
  text += Row("seed", std::to_string(run.seed));
  text += LastFigure(lines, "step_loss", "loss of the last step");
  const std::vector<MetricsLine> validated = UpToModel(position, lines);
  text += LastFigure(validated, "valid_loss", "validation loss");
  text += LastFigure(validated, "accuracy", "validation accuracy");
  text.pop_back();
  return text;
}

}  // namespace hippodrome
