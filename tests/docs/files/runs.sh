# Runs of two jobs.
printf '/a\n' >a.txt
for job in fbench fbench feedsim_mini; do
    printf 'job = "%s"\ntargets = ["http://127.0.0.1:8080/"]\nduration = "300ms"\n' $job >run.toml
    plimsoll run run.toml --quiet
done
