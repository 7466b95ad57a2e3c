# Completion of tabletop for fish.
function __tabletop_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l value (string replace -r '.*=' '' -- $words[-1])
    set -l prefix (string replace -r '[^=]*$' '' -- $words[-1])
    for line in (command $words[1] __complete $words[2..-1] 2>/dev/null)
        switch $line
            case :files
                for file in (__fish_complete_path $value)
                    echo -- $prefix$file
                end
            case :folders
                for folder in (__fish_complete_directories $value '')
                    echo -- $prefix$folder
                end
            case ':*'
            case '*'
                echo -- $line
        end
    end
end
complete -c tabletop -f -a '(__tabletop_complete)'
