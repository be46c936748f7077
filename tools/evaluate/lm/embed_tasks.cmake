# Writes OUTPUT, a C++ source with the task files of FOLDER:
#   cmake -DFOLDER=... -DTASKS=copa,cb -DOUTPUT=... -P embed_tasks.cmake
string(REPLACE "," ";" names ${TASKS})
set(entries "")
foreach(name IN LISTS names)
  file(READ ${FOLDER}/${name}.json text)
  string(APPEND entries "    {\"${name}\", R\"task(${text})task\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"tools/evaluate/lm/lm_task.h\"

namespace hippodrome {

std::span<const std::pair<std::string_view, std::string_view>> BuiltInLmTasks() {
  static constexpr std::pair<std::string_view, std::string_view> kTasks[] = {
${entries}  };
  return kTasks;
}

}  // namespace hippodrome
")
