/*!
The license of a script.
*/
let a = 1
