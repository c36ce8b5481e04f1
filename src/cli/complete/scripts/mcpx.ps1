# Completion of mcpx for PowerShell. Put it in place by a line in your $PROFILE:
#   mcpx completions powershell | Out-String | Invoke-Expression
# What may come next is asked of mcpx itself; it starts neither a daemon nor a server.
Register-ArgumentCompleter -Native -CommandName mcpx -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    # The words in front of the one that is being typed, as mcpx would get them: without their quotes.
    $before = @($commandAst.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object {
        if ($_ -is [System.Management.Automation.Language.StringConstantExpressionAst] -or
            $_ -is [System.Management.Automation.Language.ExpandableStringExpressionAst]) { $_.Value } else { $_.Extent.Text }
    })
    $program = $before[0]
    # A quote that is open belongs to the line and not to the word.
    $typed = ([string]$wordToComplete) -replace "^['`"]", '' -replace "['`"]$", ''
    $words = @($before | Select-Object -Skip 1) + @($typed)
    # An empty word in the last place would be lost on the way, so it is announced.
    & $program complete powershell $words.Count @words 2>$null | ForEach-Object {
        if ($_ -eq ':files' -or $_ -eq ':directories') {
            [System.Management.Automation.CompletionCompleters]::CompleteFilename($wordToComplete)
        } elseif ($_ -ne '') {
            $word, $about = $_ -split "`t", 2
            # What PowerShell would take for something else than a word is quoted.
            $plain = $word -notmatch "[\s'`"``$;|&<>(){},]" -and $word -notmatch '^[@#]' -and $typed -eq $wordToComplete
            $text = if ($plain) { $word } else { "'" + $word.Replace("'", "''") + "'" }
            $tip = if ($about) { $about } else { $word }
            [System.Management.Automation.CompletionResult]::new($text, $word, 'ParameterValue', $tip)
        }
    }
}
